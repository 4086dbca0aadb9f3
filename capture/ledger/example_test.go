package ledger_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

func ExampleDerivedID() {
	one, again, other := ledger.DerivedID("move", "1"), ledger.DerivedID("move", "1"), ledger.DerivedID("move1")
	fmt.Println(one == again, one == other)
	// Output: true false
}
