package embedded_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// A store holds messages by group, and finds the answers to a question.
func ExampleStore_Search() {
	dir, err := os.MkdirTemp("", "memory-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := embedded.Open(filepath.Join(dir, "memory.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	said := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	err = store.Write(ctx, "group", []graphiti.Row{
		{Name: "1", Role: graphiti.RoleUser, Text: "My cat is called Miso.", Said: said},
		{Name: "2", Role: graphiti.RoleUser, Text: "The staging database listens on port 6543.", Said: said},
	})
	if err != nil {
		log.Fatal(err)
	}
	facts, err := store.Search(ctx, []string{"group"}, "Which port does the staging database use?", 3)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(facts[0].Text)
	// Output: user, 2026-05-01: The staging database listens on port 6543.
}
