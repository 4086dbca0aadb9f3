package inject

import (
	"context"
	"log/slog"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// DryRun are options of a Memory that decides as one with o does, and writes
// nothing: what is decided is not stored, what is found is not cached, and nothing
// is prepared. Parts that are missing in o are empty.
func DryRun(o Options) Options {
	o.Decisions, o.Facts, o.Prefetch = readDecisions{o.Decisions}, noFacts{}, false
	if o.Snapshots != nil {
		o.Snapshots = readSnapshots{o.Snapshots}
	}
	if o.Search == nil {
		o.Search = noSearch{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// readDecisions looks decisions up and stores none.
type readDecisions struct{ Decisions }

func (r readDecisions) Lookup(ctx context.Context, generation int64, keys [][16]byte) ([]*Decision, error) {
	if r.Decisions == nil {
		return make([]*Decision, len(keys)), nil
	}
	return r.Decisions.Lookup(ctx, generation, keys)
}

func (readDecisions) Keep(_ context.Context, _ [16]byte, d Decision, _ ...string) (*Decision, error) {
	return &d, nil
}

// noFacts is a cache that holds nothing.
type noFacts struct{}

func (noFacts) Lookup(string, string, int64) ([]graphiti.Fact, bool, bool)      { return nil, false, false }
func (noFacts) Version(string) uint32                                           { return 0 }
func (noFacts) Store(string, string, int64, uint32, []graphiti.Fact, int, bool) {}

// noSearch finds nothing.
type noSearch struct{}

func (noSearch) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}

// readSnapshots reads short-term memory and keeps none.
type readSnapshots struct{ Snapshots }

func (readSnapshots) Save(string, []byte, int64, ...string) {}
