package distil_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/graphiti-proxy/graphiti-proxy/capture/distil"
)

// An endpoint is any server with OpenAI's Chat Completions API.
func ExampleEndpoint_Ask() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"choices": [{"message": {"content": "{\"facts\": []}"}}], "usage": {"total_tokens": 12}}`)
	}))
	defer server.Close()
	model := distil.NewEndpoint(server.URL+"/v1", "small", func() string { return "key" })
	answer, tokens, err := model.Ask(context.Background(), nil, "Answer in JSON.", "Which facts?")
	fmt.Println(answer, tokens, err)
	// Output: {"facts": []} 12 <nil>
}
