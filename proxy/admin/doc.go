// Package admin owns the second listener: health, metrics, status, the queue
// and the memory by hand, for operators and for the command line. It translates
// between HTTP and package service. Nothing of it is reachable through the
// client listener.
//
// It must not know the proxy or any store, nor keep conversation text. Of our packages it
// may import service, and health and capture for their types.
package admin
