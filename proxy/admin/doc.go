// Package admin owns the second listener: health, metrics, the operations of package
// service over HTTP, and admission to them and to the pages of package inspector. The
// client listener reaches none of them.
//
// It must not know the proxy, any store, or the effect of an operation or a page, nor store
// conversation text or a credential. Of our packages it may import service and inspector,
// and health for its types.
package admin
