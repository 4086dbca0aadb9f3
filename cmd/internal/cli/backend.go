package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// MemoryOptions describes a memory.
type MemoryOptions struct {
	Kind   string // embedded, graphiti or graphiti-mcp
	Remote remote.Options

	Dir       string             // directory of the store
	Shared    database.DB        // database that replicas share, in place of a file in Dir; or nil
	Indexes   int                // most bytes of the search indexes, or 0 for the default
	Embedding embedded.Embedding // unused without a URL
	Meaning   bool               // search by meaning, without Embedding by the model in the program
	Model     string             // file of multilingual-e5-small, in place of the model in the program; or ""
	Log       *slog.Logger
}

// MemoryService is a memory on a network.
type MemoryService interface {
	Memory() *graphiti.Memory
	Check(ctx context.Context, report func(remote.Check))
}

// Backend is an open memory, with the extras of its store.
type Backend struct {
	Memory *graphiti.Memory
	Graph  *graphiti.Memory                // Graphiti, which gets a copy; or nil
	Ledger func(ledger.Say) *ledger.Ledger // record of turns
	Warm   func(ctx context.Context) error // builds the indexes
	Pause  func(paused bool)               // stops texts to an embedding endpoint, or resumes them
	Facts  *embedded.Store                 // stores distilled facts
}

func OpenMemory(o MemoryOptions) (b Backend, err error) {
	if o.Kind != "embedded" {
		s, err := ConnectMemory(o)
		if err != nil {
			return b, err
		}
		b.Graph = s.Memory()
	}
	var store *embedded.Store
	if o.Shared != nil {
		store = embedded.OpenShared(o.Shared)
	} else if store, err = embedded.Open(filepath.Join(o.Dir, "memory.db")); err != nil {
		return b, err
	}
	if o.Indexes > 0 {
		store.Limit(o.Indexes)
	}
	b.Memory, b.Ledger, b.Warm, b.Facts, b.Pause = store.Memory(), store.Ledger, store.Warm, store, func(bool) {}
	if o.Embedding.URL != "" {
		b.Pause = store.Pause
	}
	if o.Meaning {
		if err := understand(store, &o); err != nil {
			return b, errors.Join(err, store.Close())
		}
	}
	return b, nil
}

// understand makes the store searchable by meaning.
func understand(store *embedded.Store, o *MemoryOptions) error {
	if o.Embedding.URL != "" {
		store.Embed(o.Embedding, o.Log)
		return nil
	}
	var m embedded.Encoder
	m, err := sentence.Load()
	if o.Model != "" {
		m, err = sentence.OpenE5(o.Model)
	}
	if err != nil {
		return fmt.Errorf("load the model of sentences: %w", err)
	}
	store.Understand(m, embedded.FitOf(m.Name()), o.Log)
	return nil
}

// ConnectMemory returns a client of a service, without a call to the service.
func ConnectMemory(o MemoryOptions) (MemoryService, error) {
	if o.Kind == "graphiti-mcp" {
		return mcp.New(o.Remote)
	}
	return rest.New(o.Remote)
}
