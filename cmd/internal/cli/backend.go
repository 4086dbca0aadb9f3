package cli

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
)

// MemoryOptions names a memory.
type MemoryOptions struct {
	Kind   string // embedded, graphiti or graphiti-mcp
	Remote remote.Options

	Dir       string             // of the embedded memory
	Embedding embedded.Embedding // without a URL: none
	Log       *slog.Logger
}

// MemoryService is a memory that is reached over a network.
type MemoryService interface {
	Memory() *graphiti.Memory
	Check(ctx context.Context, report func(remote.Check))
}

// Backend is an open memory, with what only the embedded memory has: for a service
// Ledger is nil, and Warm and Pause do nothing.
type Backend struct {
	Memory *graphiti.Memory
	Ledger func(ledger.Say) *ledger.Ledger // its record of turns
	Warm   func(ctx context.Context) error // makes its indexes
	Pause  func(paused bool)               // of sending texts to an embedding model
}

// OpenMemory opens a memory.
func OpenMemory(o MemoryOptions) (b Backend, err error) {
	if o.Kind != "embedded" {
		s, err := ConnectMemory(o)
		if err != nil {
			return b, err
		}
		return Backend{Memory: s.Memory(), Warm: func(context.Context) error { return nil }, Pause: func(bool) {}}, nil
	}
	store, err := embedded.Open(filepath.Join(o.Dir, "memory.db"))
	if err != nil {
		return b, err
	}
	if o.Embedding.URL != "" {
		if err := store.Embed(o.Embedding, o.Log); err != nil {
			return b, errors.Join(err, store.Close())
		}
	}
	return Backend{Memory: store.Memory(), Ledger: store.Ledger, Warm: store.Warm, Pause: store.Pause}, nil
}

// ConnectMemory returns a client of a service, and calls nothing yet.
func ConnectMemory(o MemoryOptions) (MemoryService, error) {
	if o.Kind == "graphiti-mcp" {
		return mcp.New(o.Remote)
	}
	return rest.New(o.Remote)
}

// TestMemory checks a service. With smoke it also checks that the service stores a
// message.
func TestMemory(ctx context.Context, s MemoryService, smoke bool, report func(remote.Check)) {
	healthy := true
	first := true
	s.Check(ctx, func(c remote.Check) {
		if first {
			healthy, first = c.OK, false
		}
		report(c)
	})
	if smoke && healthy {
		remote.Smoke(ctx, s.Memory(), report)
	}
}
