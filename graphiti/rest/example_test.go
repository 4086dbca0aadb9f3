package rest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
)

// Graphiti accepts a message before it extracts the facts: only the listed episode proves that
// the message is stored.
func ExampleClient_Write() {
	server, err := graphititest.Start(graphititest.Options{}) // a stand-in
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := rest.New(remote.Options{Endpoint: server.URL()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	if err := client.Write(ctx, "user_josh", []graphiti.Row{{Role: graphiti.RoleUser, Text: "My cat is called Miso."}}); err != nil {
		log.Fatal(err)
	}
	if err := server.Settle(ctx); err != nil { // time for the extraction
		log.Fatal(err)
	}
	episodes, err := client.Episodes(ctx, "user_josh", 10)
	fmt.Println(len(episodes), err)
	// Output: 1 <nil>
}
