package transcripts_test

import (
	"fmt"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
)

func ExampleLines() {
	file := strings.NewReader(`{"role":"user","content":"My cat is called Miso.","session":"pets"}`)
	_, err := transcripts.Lines(file)(func(n int, l service.Line) error {
		fmt.Println(n, l.Session, l.Content)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 pets My cat is called Miso.
	// <nil>
}
