package card_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
)

func ExampleRead() {
	for _, s := range card.Read("Always use tabs in Go files. Should tests use them, too?").Statements {
		fmt.Println(s.Act == card.Rule, s.Text)
	}
	// Output: true Always use tabs in Go files.
}
