package main

import (
	"net"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// TestAddressesThatWork: a listener on all addresses is reached on this machine, in
// the family that it was set to.
func TestAddressesThatWork(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"0.0.0.0:0": "http://127.0.0.1:9", ":0": "http://127.0.0.1:9", "[::]:0": "http://[::1]:9", "127.0.0.1:0": "http://127.0.0.1:9", "localhost:0": "http://localhost:9", "10.0.0.1:9": "http://10.0.0.1:9",
	} {
		if got := address(&config.Config{}, "client", set, &net.TCPAddr{IP: net.IPv6zero, Port: 9}); got != want {
			t.Errorf("%s is reached at %s, want %s", set, got, want)
		}
	}
}
