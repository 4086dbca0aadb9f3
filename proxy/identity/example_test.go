package identity_test

import (
	"fmt"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

func ExampleSecret() {
	var h fasthttp.RequestHeader
	h.Set("Authorization", "Bearer sk-test")
	fmt.Println(identity.Secret(&h))
	// Output: sk-test true
}

func ExampleProduct() {
	fmt.Println(identity.Product([]byte("opencode/1.18.33 runtime/bun/1.3.14")))
	// Output: opencode
}
