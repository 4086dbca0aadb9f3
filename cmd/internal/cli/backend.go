package cli

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/mcp"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

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

// OpenMemory opens the configured memory: in a database that replicas share, or else in a file. now
// returns the latest configuration, and called gets each call to a service, or is nil.
func OpenMemory(cfg *config.Config, now func() *config.Config, shared database.DB, called func(call string, o remote.Outcome), log *slog.Logger) (b Backend, err error) {
	if cfg.RemoteMemory() {
		s, err := ConnectMemory(cfg, now, called)
		if err != nil {
			return b, err
		}
		b.Graph = s.Memory()
	}
	var store *embedded.Store
	if shared != nil {
		store = embedded.OpenShared(shared)
	} else if store, err = embedded.Open(filepath.Join(cfg.DataDir, "memory.db")); err != nil {
		return b, err
	}
	if cfg.Memory.IndexBytes > 0 {
		store.Limit(cfg.Memory.IndexBytes)
	}
	b.Memory, b.Ledger, b.Warm, b.Facts, b.Pause = store.Memory(), store.Ledger, store.Warm, store, func(bool) {}
	e := cfg.Embedding
	switch used := e.URL != "" && !cfg.RemoteMemory(); {
	case used && cfg.Consented():
		b.Pause = store.Pause
		if cfg.Recall.Meaning {
			store.Embed(embedded.Embedding{URL: e.URL, Model: e.Model, APIKey: func() string { return now().Embedding.APIKey }}, log)
		}
		return b, nil
	case used:
		log.Warn("embedding.url is unused: memory.consent does not cover it, so no text is sent there", "url", e.URL)
	}
	if cfg.Recall.Meaning {
		if err := understand(store, log); err != nil {
			return b, errors.Join(err, store.Close())
		}
	}
	return b, nil
}

// understand makes the store searchable by meaning, with the model in the program.
func understand(store *embedded.Store, log *slog.Logger) error {
	m, err := sentence.Load()
	if errors.Is(err, sentence.ErrProcessor) {
		log.Info("messages are found by their words only", "reason", err)
		return nil
	}
	if err != nil {
		return err
	}
	store.Understand(m, embedded.FitOf(m.Name()), log)
	return nil
}

// ConnectMemory returns a client of the configured service, without a call to it.
func ConnectMemory(cfg *config.Config, now func() *config.Config, called func(call string, o remote.Outcome)) (MemoryService, error) {
	o := remote.Options{
		Endpoint: cfg.Memory.Endpoint, APIKey: func() string { return now().Memory.APIKey }, Headers: cfg.Memory.Headers, Certificate: cfg.Memory.ClientCertificate,
		GetMemory: cfg.Recall.Query == "get-memory", Called: called,
	}
	if cfg.Memory.Backend == "graphiti-mcp" {
		return mcp.New(o)
	}
	return rest.New(o)
}
