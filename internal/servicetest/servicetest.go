// Package servicetest owns a memory for tests of operations: files in a directory of the test,
// and a service and a planner on them, without a proxy. Programs must not link it.
package servicetest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// Owner is the person of single mode. Their group is OwnersGroup.
const (
	Owner       = "user:josh"
	OwnersGroup = "user_josh"
)

// Options lists differences from the embedded memory of one person.
type Options struct {
	Graph  *graphiti.Memory // gets a copy
	Bare   bool             // leaves Graph's facts there
	State  *cache.State     // replaces the file with blocks and sessions
	Multi  bool             // every credential is its own tenant
	Owner  string           // replaces the person of single mode
	Hashed bool             // group IDs are hashes
	Now    func() time.Time // clock for the ages of facts; nil means time.Now
}

func (o *Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Fixture is the memory that operations use.
type Fixture struct {
	*service.Host
	Pipeline *capture.Pipeline
	State    *cache.State
	Backend  *graphiti.Memory
	Standing *standing.Keeper
	planner  *inject.Planner
	close    func()
}

// Close closes the files. The end of the test also calls it.
func (m *Fixture) Close() { m.close() }

// Open opens the memory in a directory.
func Open(t testing.TB, dir string, o Options) *Fixture {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	store, err := embedded.Open(filepath.Join(dir, "memory.db"))
	must(err)
	kept, state := store.Memory(), o.State
	if state == nil {
		state, err = cache.OpenState(filepath.Join(dir, "state.db"), time.Hour)
		must(err)
	}
	to := destination(store, &o)
	p, err := capture.Open(capture.Options{
		Bounds:      capture.Bounds{MaxChars: 8000, Timeout: 10 * time.Second, StallAfter: time.Minute},
		Destination: to,
		Events:      capture.Events{OnKept: keepCards(t, state)}, Log: log,
	})
	must(err)
	recall := &recall{turns: p, namer: graphiti.Namer{Raw: !o.Hashed}}
	planner := inject.New(inject.Services{
		Search: state.Ended.Search(kept), Decisions: state.Decisions, Snapshots: state.Snapshots,
		Opening: recall, Redact: p.RedactedBy, Now: o.now, Log: log,
		Decides: func(context.Context, string) bool { return false },
	}, recall, inject.RecallSettings{
		Timeout: time.Minute, MaxFacts: 8, Asked: 16, MaxChars: 1500, MinScore: 0.18,
		Share: 0.05, Window: 32_000, StaleAfter: 30 * 24 * time.Hour, CardChars: 400,
	})
	var sv *service.Service
	said := openStanding(&sv, kept, p, state, recall.namer, log)
	sv = service.New(service.Options{
		Secret: []byte("secret"), Memory: kept, Graph: o.Graph, Pipeline: p, Planner: func() *inject.Planner { return planner }, Standing: said, State: state, Multi: o.Multi, Owner: cmp.Or(o.Owner, Owner),
		People: onePerson{}, Log: log,
		Settings: service.Settings{Namer: recall.namer, MaxFacts: 8, MaxChars: 8000, Timeout: 10 * time.Second},
	})
	recall.Keeper, recall.state = said, state
	began := time.Now()
	m := &Fixture{Pipeline: p, Standing: said, State: state, Backend: kept, planner: planner, Host: &service.Host{
		Memory: sv, Queue: p, Link: func(service.Caller) service.Link { return service.Link{} },
		Counts: func(context.Context) (capture.QueueStatus, error) { return p.Status(), nil },
		Passed: func(int, int, string) []graphiti.LoggedRequest {
			return []graphiti.LoggedRequest{{Number: 1, Path: "/v1/models", Status: 200}}
		},
		Status: func(context.Context, bool) health.Status {
			return health.Status{Ready: true, Started: began, Memory: health.MemoryStatus{Backend: "embedded", State: health.StateWorking}, Queue: p.Status()}
		},
	}}
	m.close = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		sv.Close()
		said.Close()
		planner.Close()
		err := errors.Join(p.Shutdown(ctx), state.Close(), kept.Close())
		if o.Graph != nil {
			err = errors.Join(err, o.Graph.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(m.close)
	return m
}

// destination is a store with copies in a Graphiti.
func destination(store *embedded.Store, o *Options) capture.Destination {
	to := capture.Destination{Ledger: store.Ledger}
	if o.Graph == nil {
		return to
	}
	if to.Graph, to.Apart = o.Graph, o.Graph.Apart(); !o.Bare {
		to.Facts = store
	}
	return to
}

// openStanding returns the keeper of standing text for a service that is opened later.
func openStanding(sv **service.Service, m *graphiti.Memory, p *capture.Pipeline, state *cache.State, namer graphiti.Namer, log *slog.Logger) *standing.Keeper {
	return standing.New(standing.Options{
		Memory: m, Pipeline: p, State: state, Config: standing.Config{Namer: namer, Remember: true}, Log: log,
		Ended: func(ctx context.Context, owner, program string, e standing.Ending) string {
			return (*sv).NoteEnded(ctx, owner, program, e)
		},
	})
}

// keepCards stores the card lines of turns.
func keepCards(t testing.TB, state *cache.State) func(*ledger.Turn, []string) {
	return func(turn *ledger.Turn, groups []string) {
		if err := (card.Cards{Lists: state.Snapshots}).Keep(turn, groups); err != nil {
			t.Error(err)
		}
	}
}

// Say stores a person's message of a conversation and an answer. An empty workspace means
// none.
func (m *Fixture) Say(t testing.TB, user, session, workspace, text string) {
	t.Helper()
	scope := "user"
	if workspace != "" {
		scope = "workspace"
	}
	lines := []service.Line{{Scope: scope, Role: "user", Content: text}, {Scope: scope, Role: "assistant", Content: "I see."}}
	s := service.Selector{User: user, Session: session, Workspace: workspace}
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Selector: s, Lines: lines}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
}

// Hear has the memory obey the requests in a message that a person typed in a conversation.
func (m *Fixture) Hear(t testing.TB, who graphiti.Who, text string) inject.Heard {
	t.Helper()
	return m.Standing.Apply(t.Context(), standing.Message{
		Who: who, Generation: m.State.Generations.Now(), Turn: text, Text: text, Typed: true, FromFile: func() bool { return false },
	})
}

// Settle waits until the memory has processed all stored turns.
func (m *Fixture) Settle(t testing.TB) {
	t.Helper()
	helptest.Until(t, "the memory to store all turns", func() bool { return m.Pipeline.Status().Pending == 0 })
}

// onePerson contains only the owner, with their own memory.
type onePerson struct{}

func (onePerson) People() []identity.Person {
	return []identity.Person{{ID: "josh", Key: Owner, Name: "Josh", Admin: true}}
}
func (onePerson) Resolve(user string) string                     { return user }
func (onePerson) Registered(string) *identity.Person             { return nil }
func (onePerson) Accept(context.Context, *identity.Person) error { return nil }
func (onePerson) Check(context.Context) error                    { return nil }
