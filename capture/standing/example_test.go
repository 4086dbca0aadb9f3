package standing_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
)

func ExampleForgets() {
	for _, text := range []string{"Forget that my cat is called Miso.", "What is my cat called?"} {
		fmt.Println(standing.Forgets([]byte(text)))
	}
	// Output:
	// true
	// false
}

func ExampleDirectives() {
	list, _ := standing.Directives("Thanks!\ndecision (project): Postgres, not MySQL")
	fmt.Printf("%+v\n", list)
	// Output: [{Kind:decision Scope:workspace Text:Postgres, not MySQL}]
}
