package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// People are the registered people and their memories.
type People interface {
	// All returns the registered people.
	All() []Person

	// MemoryOf returns the key of the memory of the person with an id.
	MemoryOf(id string) (key string, ok bool)

	// Accept confirms that the memory of the person with an id is theirs.
	Accept(ctx context.Context, id string) error

	// Check determines the owners of the memories again.
	Check(ctx context.Context) error
}

// Person is a registered person.
type Person struct {
	ID     string
	Memory string // key of the memory
	Name   string // display name, or ""
	Admin  bool
	Off    bool   // neither recall nor storage
	Doubt  string // why the person has no memory before a confirmation, or ""
}

// Acceptance confirms that the memory of an ID belongs to the person registered with it.
type Acceptance struct {
	ID   string `json:"id"`
	Keep bool   `json:"keep,omitempty"` // its content is the person's
}

// Accepted is the result of Accept.
type Accepted struct {
	ID     string `json:"id"`
	Memory string `json:"memory"` // key of the memory
}

// Accept gives a registered person the memory of their ID, whoever owned it before. If the
// memory has content, the caller must confirm with Keep that it is this person's.
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
