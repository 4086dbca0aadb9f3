package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// People are the registered people, and whether it is certain whose memory is whose.
type People interface {
	// All returns everybody who is registered.
	All() []Person

	// MemoryOf returns the key of the memory of the person with an id.
	MemoryOf(id string) (key string, ok bool)

	// Accept confirms that the memory of the person with an id is theirs.
	Accept(ctx context.Context, id string) error

	// Check judges again whose memory is whose.
	Check()
}

// Person is somebody who is registered.
type Person struct {
	ID     string
	Memory string // its key
	Name   string // for people; may be empty
	Admin  bool
	Off    bool   // nothing is recalled and nothing kept
	Doubt  string // why they have no memory until somebody confirms them; empty: they have
}

// Acceptance says that the memory under an id belongs to the person who is registered
// with it.
type Acceptance struct {
	ID   string `json:"id"`
	Keep bool   `json:"keep,omitempty"` // what is held in it is theirs
}

// Accepted says whose memory a person has.
type Accepted struct {
	ID     string `json:"id"`
	Memory string `json:"memory"` // its key
}

// Accept gives a registered person the memory of their id, whoever it belonged to
// before. If something is kept in it, the caller must say with Keep that it is this
// person's.
func (sv *Service) Accept(ctx context.Context, a *Acceptance) (Accepted, error) {
	key, ok := sv.o.People.MemoryOf(a.ID)
	if !ok {
		return Accepted{}, invalid(fmt.Sprintf("no person of identity.users_file has the id %q; after a change of the file, reload the configuration with SIGHUP", a.ID))
	}
	if !a.Keep {
		found, err := sv.Find(ctx, Selector{User: key})
		if err != nil {
			return Accepted{}, err
		}
		if held := slices.DeleteFunc(found.Groups, func(o ledger.Owned) bool { return o.Empty || o.Shared }); len(held) > 0 {
			return Accepted{}, invalid(fmt.Sprintf("the memory of %s is not empty; if it is this person's, confirm that with keep, else run graphiti-proxy memory forget --user %s first", a.ID, a.ID))
		}
	}
	if err := sv.o.People.Accept(ctx, a.ID); err != nil {
		return Accepted{}, fmt.Errorf("accept %s: %w", a.ID, err)
	}
	return Accepted{ID: a.ID, Memory: key}, nil
}
