package wire_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

func ExamplePlainPath() {
	fmt.Printf("%s\n", wire.PlainPath([]byte("http://host//v1/./x/..%2fmodels?limit=2")))
	// Output: /v1/models
}
