package main

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestAdminDoesNotHoldUpTheEnd: somebody who is connected to the admin side has
// a second, and clients are let in no more from the beginning.
func TestAdminDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	c, err := net.Dial("tcp", w.app.admin.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\n")); err != nil { // and no more
		t.Fatal(err)
	}
	resp, err := w.client.Get("http://" + w.app.admin.Addr().String() + "/healthz") // after which the first is accepted
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than a connection that says nothing may take
	defer cancel()
	if err := w.app.Shutdown(ctx); err != nil || ctx.Err() != nil {
		t.Errorf("got %v, %v, want no error, in time", err, ctx.Err())
	}
	if c, err := net.Dial("tcp", w.app.proxy.Addr().String()); err == nil {
		c.Close()
		t.Error("clients are let in")
	}
}
