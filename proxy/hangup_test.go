package proxy

import (
	"sync"
	"testing"
)

// TestHangupsOfManyAtTheSameTime: where a call stands changes as others go,
// and each finds itself. The race detector looks on.
func TestHangupsOfManyAtTheSameTime(t *testing.T) {
	var h hangups
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 500 {
				c := &call{client: &clientConn{}}
				h.watch(c)
				h.forget(c)
				h.forget(c)
			}
		}()
	}
	wg.Wait()
	if len(h.calls) != 0 || len(h.socks) != 0 {
		t.Errorf("%d calls, %d sockets are left", len(h.calls), len(h.socks))
	}
}
