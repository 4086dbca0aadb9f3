package cache

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// State is where blocks and sessions outlive the process: a file, or what
// replicas share.
type State struct {
	store  store
	Blocks *Blocks
	Chain  *Chain

	Snapshots  *Snapshots
	Tenants    *Tenants
	Tombstones *Tombstones
}

// OpenState opens the file at path. What was not used for ttl is removed.
func OpenState(path string, ttl time.Duration) (*State, error) {
	f, err := openFile(path, ttl)
	if err != nil {
		return nil, err
	}
	s := newState(f)
	if err := f.loadPending(time.Now(), s.Chain.remember); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if _, err := s.Tombstones.Groups(context.Background()); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return s, nil
}

// Share returns the state that replicas share. What was not used for ttl is
// removed. The connection stays its owner's.
func Share(db *redis.DB, ttl time.Duration) *State { return newState(&replicas{db, ttl}) }

func newState(kept store) *State {
	return &State{
		store:     kept,
		Blocks:    &Blocks{store: kept, recent: newRecent[[16]byte, block](blocksInMemory)},
		Snapshots: &Snapshots{kept},
		Tenants:   &Tenants{store: kept, recent: newRecent[string, int64](tenantsInMemory)},

		Tombstones: &Tombstones{store: kept},
		Chain:      &Chain{store: kept, recent: newRecent[[16]byte, link](linksInMemory)},
	}
}

// Trouble is what is known to be wrong with the file; nil: nothing, or there is
// none. Check looks.
func (s *State) Trouble() *sqlite.Trouble {
	if f, ok := s.store.(*file); ok {
		return f.db.Trouble()
	}
	return nil
}

// Check looks whether the file can be used, and returns what is wrong.
func (s *State) Check() *sqlite.Trouble {
	if f, ok := s.store.(*file); ok {
		return f.db.Check()
	}
	return nil
}

// Close ends what the state does by itself, and closes its file.
func (s *State) Close() error { return s.store.close() }
