package main

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestAdminDoesNotHoldUpTheEnd checks that an incomplete request on the admin side delays a
// shutdown by less than four seconds, and that clients cannot connect after it.
func TestAdminDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	c, err := net.Dial("tcp", w.app.admin.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\n")); err != nil { // incomplete
		t.Fatal(err)
	}
	resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + "/healthz") // by now the first connection has been accepted
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than the time limit of a silent connection
	defer cancel()
	if err := w.app.Shutdown(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("got %v, %v, want no error, in time", err, ctx.Err())
	}
	if c, err := net.Dial("tcp", w.app.proxy.Addr().String()); err == nil {
		c.Close()
		t.Error("clients are let in")
	}
}
