// Package redis owns the connection to the Redis server that replicas of the proxy
// share, and the stream of events between them. Calls are bounded in time and fail at
// once while the server is down; a replica learns when it may have missed an event.
//
// It must not know what the keys and events mean. It imports none of our packages.
package redis
