package servicetest

import (
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// Talk has a person say something in a conversation of which the client shows no more: the
// memory recalls for the message, obeys the requests in it, and stores the turn. Talk returns
// the block of the message and the counts of the X-Graphiti-Memory header.
func (m *Fixture) Talk(t testing.TB, who graphiti.Who, text string) (block string, heard inject.Heard) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "stand-in", "messages": []any{map[string]string{"role": "user", "content": text}}})
	if err != nil {
		t.Fatal(err)
	}
	var c dialect.Conversation
	if !(chat.Dialect{}).Parse(body, &c) {
		t.Fatalf("parse of %s failed", body)
	}
	sum := sha256.Sum256([]byte(who.Session + "\n" + text))
	mode := inject.Mode{Recall: true, Ingest: true, Generation: m.State.Generations.Now()}
	plan := m.planner.Plan(t.Context(), &c, []dialect.Fingerprint{dialect.Fingerprint(sum[:16])}, who, false, mode)
	heard = m.Standing.Apply(t.Context(), standing.Message{
		Who: who, Generation: plan.Generation, Turn: plan.Turn, Text: text, Typed: true, FromFile: func() bool { return false },
	})
	m.planner.Remember(who, plan.Generation, inject.Ended{Said: text})
	if heard.Forgets {
		return plan.Block, heard
	}
	turn := ledger.Turn{
		ID: plan.Turn, Session: who.Session, Owner: who.Owner(), Workspace: who.Workspace, User: text, Assistant: "Understood, I will keep that in mind.",
		Said: time.Now(), Answered: time.Now(), Targets: plan.Write, Generation: plan.Generation,
	}
	if who.Workspace == "" {
		turn.Place = who.Place()
	}
	if err := m.Pipeline.Add(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	return plan.Block, heard
}

// recall gives the planner the groups and the card.
type recall struct {
	*standing.Keeper
	state *cache.State
	turns *capture.Pipeline
	namer graphiti.Namer
}

// Reads returns the groups to search. Texts that were promoted for everywhere count in
// projects too.
func (r *recall) Reads(w graphiti.Who, about bool) []graphiti.Target {
	if own, ok := r.namer.Group(graphiti.ScopeUser, w); ok && w.Workspace != "" {
		about = about || r.turns.Promoted(own)
	}
	return r.state.Generations.Recallable(r.namer.Reads(w, about))
}

// Person returns no group: no model distils facts.
func (r *recall) Beside(w graphiti.Who) (graphiti.Target, bool) { return r.namer.Beside(w) }

// Writes returns the groups that store a turn.
func (r *recall) Writes(w graphiti.Who) []graphiti.Target { return r.namer.Writes(w) }
