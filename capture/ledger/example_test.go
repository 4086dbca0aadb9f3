package ledger_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

func ExampleDerivedID() {
	fmt.Println(ledger.DerivedID("move", "1") == ledger.DerivedID("move", "1"), ledger.DerivedID("move", "1") == ledger.DerivedID("move1"))
	// Output: true false
}
