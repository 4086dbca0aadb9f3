package inject

import (
	"context"
	"log/slog"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// withDefaults replaces nil services by ones without effect.
func (s Services) withDefaults() Services {
	if s.Search == nil {
		s.Search = noSearch{}
	}
	if s.Decisions == nil {
		s.Decisions = noDecisions{}
	}
	if s.Snapshots == nil {
		s.Snapshots = noSnapshots{}
	}
	if s.Opening == nil {
		s.Opening = noOpening{}
	}
	if s.Redact == nil {
		s.Redact = func(text string, _ time.Time) (string, bool) { return text, true }
	}
	if s.Decides == nil {
		s.Decides = func(context.Context, string) bool { return false }
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return s
}

// noDecisions is an empty Decisions.
type noDecisions struct{ Decisions }

func (noDecisions) Keep(_ context.Context, _ [16]byte, d Decision, _ ...string) (*Decision, error) {
	return &d, nil
}
func (noDecisions) Lookup(_ context.Context, _ int64, keys [][16]byte) ([]*Decision, error) {
	return make([]*Decision, len(keys)), nil
}

// noSearch is a Searcher without facts.
type noSearch struct{}

func (noSearch) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return nil, nil
}

// noSnapshots is an empty Snapshots.
type noSnapshots struct{ Snapshots }

func (noSnapshots) Load(context.Context, string) ([]byte, error)                 { return nil, nil }
func (noSnapshots) Save(context.Context, string, []byte, int64, ...string) error { return nil }

// noOpening is an empty Opening.
type noOpening struct{}

func (noOpening) Standing(context.Context, graphiti.Who) ([]graphiti.Fact, error) { return nil, nil }
