package inject_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

func ExampleTokens() {
	fmt.Println(inject.Tokens("My cat is called Miso."), inject.Tokens("私の猫"))
	// Output: 6 3
}
