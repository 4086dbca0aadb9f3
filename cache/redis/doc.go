// Package redis owns the connection to the state that replicas share: it is
// bounded in time, it is left alone while the server is down, and what it says
// to other replicas arrives or is made up for. It must not know what is kept.
package redis
