package cache

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// State is the durable state: the file of one proxy, or tables that replicas share.
type State struct {
	Decisions   *Decisions
	Sessions    *Sessions
	Snapshots   *Snapshots
	Ended       *Ended
	Tenants     *Tenants
	Generations *Generations
	Proofs      *Proofs
	Figures     *Figures
	Trials      *Snapshots // of proof mode

	tables   *tables
	unfollow func() // ends follow; nil for a file
}

// OpenState opens the file at path. Decisions, sessions and snapshots expire ttl after they
// were written.
func OpenState(path string, ttl time.Duration) (*State, error) {
	f, err := openFile(path, ttl)
	if err != nil {
		return nil, err
	}
	s := newState(f)
	if err := s.Generations.Refresh(context.Background()); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return s, nil
}

// newState returns the views of a store.
func newState(s *tables) *State {
	return &State{
		Decisions: &Decisions{s, memo.NewLRU[[16]byte, recentDecision](decisionsInRAM)},
		Sessions:  &Sessions{store: s, recent: memo.NewLRU[[16]byte, string](sessionsInRAM)}, Snapshots: &Snapshots{s, snapshotKind}, Ended: &Ended{s}, Tenants: newTenants(s),
		Generations: newGenerations(s), Proofs: &Proofs{s}, Figures: newFigures(s), Trials: &Snapshots{s, trialKind}, tables: s,
	}
}

// Fault returns the known problem of the file, or nil. It does not test the file, as Check
// does.
func (s *State) Fault() *database.Fault { return s.tables.db.Fault() }

// Keeps returns the lifetime of decisions, sessions and snapshots.
func (s *State) Keeps() time.Duration { return s.tables.ttl }

// Check tests the file and returns its problem, or nil.
func (s *State) Check() *database.Fault { return s.tables.db.Check() }

// Close ends the state's goroutines and closes its file.
func (s *State) Close() error {
	s.Tenants.recent.Close()
	if s.unfollow != nil {
		s.unfollow()
	}
	return s.tables.close()
}
