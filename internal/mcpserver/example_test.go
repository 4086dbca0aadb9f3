package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/mcpserver"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// A client lists the tools. Call runs the operation of a tool.
func ExampleNew() {
	server := mcpserver.New(mcpserver.Options{
		Call: func(context.Context, service.Mountable, any) (any, error) { return nil, errors.New("not here") },
	})
	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, here, nil); err != nil {
		log.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "example"}, nil).Connect(ctx, there, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	tools, err := client.ListTools(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(tools.Tools), tools.Tools[0].Name)
	// Output: 7 add_memory
}
