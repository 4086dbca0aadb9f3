// Package redis owns the connection to the Redis server with the state that replicas
// share: calls are bounded in time and fail at once while the server is down, and a
// replica that may have missed an event knows it. It must not know what the state holds.
package redis
