package redact_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/capture/redact"
)

func ExampleRedact() {
	text, n := redact.Redact("The staging database: password=hunter2-Zx81-Qk93-Lm44, port 6543.")
	fmt.Println(n, text)
	// Output: 1 The staging database: password=[redacted:password], port 6543.
}
