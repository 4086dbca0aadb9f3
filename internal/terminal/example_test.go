package terminal_test

import (
	"os"

	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func ExampleTable() {
	t := &terminal.Table{}
	t.Row("memory", "messages")
	t.Row("acme/widgets", 12)
	t.Row("you", 7)
	t.Print(os.Stdout)
	// Output:
	// memory        messages
	// acme/widgets  12
	// you           7
}
