// Package admin owns the second listener: health, metrics, status, the queue
// and the memory by hand, for operators and for the command line. Nothing of it is reachable
// through the client listener.
//
// It must not know the proxy, nor keep conversation text. Of our packages it
// may import graphiti and capture (types).
package admin
