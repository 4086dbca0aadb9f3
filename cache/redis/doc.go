// Package redis owns the connection to the Redis server that replicas of the proxy share,
// and the stream of events between them. Calls have a timeout, and fail at once while the
// server is down. A replica is notified if it may have missed an event.
//
// It must not know the meaning of keys and events. It imports none of our packages.
package redis
