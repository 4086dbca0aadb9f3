package memo_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

func ExampleLRU() {
	blocks := memo.NewLRU[string, string](10)
	blocks.Add("a", "Miso", 6)
	blocks.Add("b", "Rex", 6) // above the limit together
	_, ok := blocks.Get("a")
	entries, size := blocks.Held()
	fmt.Println(ok, entries, size)
	// Output: false 1 6
}
