package response_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log"

	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

func ExampleDecode() {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	fmt.Fprint(w, "It rains.")
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	plain, err := response.Decode("gzip", b.Bytes(), response.Decoding{Max: 1 << 10, Share: new(budget.Share)})
	fmt.Printf("%s %v\n", plain, err)
	// Output: It rains. <nil>
}
