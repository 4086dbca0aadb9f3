// Package admin owns the second listener: health, metrics, and the operations of
// package service over HTTP, for operators and for the command line. Nothing of it
// is reachable through the client listener.
//
// It must not know the proxy, any store, or what an operation does, nor keep
// conversation text. Of our packages it may import service, and health for its types.
package admin
