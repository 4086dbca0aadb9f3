package cache_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
)

// The notes of a session outlive the process.
func ExampleOpenState() {
	dir, err := os.MkdirTemp("", "state-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := cache.OpenState(filepath.Join(dir, "state.db"), time.Hour)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	if err := s.Snapshots.Save(ctx, "session", []byte("notes"), s.Generations.Now(), "scope"); err != nil {
		log.Fatal(err)
	}
	notes, err := s.Snapshots.Load(ctx, "session")
	fmt.Printf("%s %v\n", notes, err)
	// Output: notes <nil>
}
