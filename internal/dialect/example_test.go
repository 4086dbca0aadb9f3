package dialect_test

import (
	"bytes"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

func ExampleSplice() {
	body := []byte(`{"messages": [{"role": "user", "content": "What is my cat called?"}]}`)
	var c dialect.Conversation
	if !(chat.Dialect{}).Parse(body, &c) {
		return
	}
	block := c.Insert(c.Last, "My cat is called Miso. ")
	fmt.Printf("%s\n", bytes.Join(dialect.Splice(nil, body, []dialect.Insert{block}), nil))
	// Output: {"messages": [{"role": "user", "content": "My cat is called Miso. \n\nWhat is my cat called?"}]}
}
