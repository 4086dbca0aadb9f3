package remote_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// Dial returns an address for logs, and rejects one that paths cannot be added to.
func ExampleDial() {
	_, shown, _, err := remote.Dial(remote.Options{Endpoint: "https://mira:secret@graphiti.example/mcp"})
	fmt.Println(shown, err)
	_, _, _, err = remote.Dial(remote.Options{Endpoint: "https://graphiti.example?group=1"})
	fmt.Println(err)
	// Output:
	// https://graphiti.example/mcp <nil>
	// the memory's endpoint must end with its path: paths are added to it
}
