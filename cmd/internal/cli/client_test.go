package cli

import "testing"

// TestReachable: a command connects to this machine also where the proxy listens
// on all addresses, as in a container.
func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:1": "127.0.0.1:1", ":1": "127.0.0.1:1", "[::]:1": "[::1]:1", "10.0.0.1:1": "10.0.0.1:1", "[fe80::1]:1": "[fe80::1]:1", "name:1": "name:1",
	} {
		if got := Reachable(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
