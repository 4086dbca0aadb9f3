// Package admin owns the second listener: health, metrics, the operations of package
// service over HTTP, and who is let in to them and to the pages of package inspector.
// Nothing of it is reachable through the client listener.
//
// It must not know the proxy, any store, or what an operation or a page does, nor keep
// conversation text or a credential. Of our packages it may import service and
// inspector, and health for its types.
package admin
