package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// people are the registered people, with the doubts about their identity. They implement
// the service's interface to them.
type people struct {
	identity.Registry
	proofs *cache.Proofs
	log    *slog.Logger

	mu sync.Mutex // held from judge to takeLocked
}

// readPeopleWithin bounds the wait for the state at a start, at a reload and at a replica's
// event.
const readPeopleWithin = 10 * time.Second

// openPeople applies the people of the configuration. They have no memory until the state
// can be read.
func openPeople(proofs *cache.Proofs, list []identity.Person, log *slog.Logger) *people {
	p := &people{proofs: proofs, log: log}
	p.Set(identity.DoubtAll(list))
	if err := p.Check(context.Background()); err != nil {
		log.Error("people of identity.users_file have no memory: read the owners of memories failed; reload the configuration to try again", "error", err)
	}
	return p
}

// reload applies another list of people, unless their proofs cannot be read or rest fails.
func (p *people) reload(list []identity.Person, rest func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx := context.Background()
	judged, claims, err := p.judge(ctx, list)
	if err == nil {
		err = rest()
	}
	if err == nil {
		p.takeLocked(ctx, judged, claims)
	}
	return err
}

// judge compares people with the proofs in the state. Its caller holds p.mu until
// takeLocked.
func (p *people) judge(ctx context.Context, list []identity.Person) (judged []identity.Person, claims map[[32]byte]string, err error) {
	if len(list) == 0 {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPeopleWithin)
	defer cancel()
	known, err := p.proofs.All(ctx)
	if err == nil {
		judged, claims = identity.Judge(list, known)
	}
	return judged, claims, err
}

// takeLocked applies the judged people, and logs the people without memory.
func (p *people) takeLocked(ctx context.Context, judged []identity.Person, claims map[[32]byte]string) {
	ctx, cancel := context.WithTimeout(ctx, readPeopleWithin)
	defer cancel()
	p.Set(judged)
	if err := p.proofs.Claim(ctx, claims); err != nil {
		p.log.Warn("store keys and identities of people failed, renames stay unnoticed until the next reload", "error", err)
	}
	doubts := p.Doubts()
	if len(doubts) == 0 {
		return
	}
	var ids []string
	for _, d := range doubts {
		ids = append(ids, d.ID)
	}
	attrs := []any{"people", ids}
	if d := doubts[0]; len(ids) == 1 && d.Named() {
		attrs = append(attrs, "why", d.Why(), "to_do", d.Remedy())
	} else {
		attrs = append(attrs, "to_do", "run graphiti-proxy status for each person's remedy")
	}
	p.log.Warn("people of identity.users_file have no memory until you confirm who they are", attrs...)
}

// Check judges the people again. If the state cannot be read, nothing changes.
func (p *people) Check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	judged, claims, err := p.judge(ctx, p.People())
	if err == nil {
		p.takeLocked(ctx, judged, claims)
	}
	return err
}

// Accept confirms a person: it makes their current keys and identities the proofs of their
// memory.
func (p *people) Accept(ctx context.Context, one *identity.Person) error {
	if err := p.proofs.Assign(ctx, one.Memory(), one.Proofs()); err != nil {
		return err
	}
	return p.Check(ctx)
}

// unconfirmed returns the people in doubt, for the status.
func (p *people) unconfirmed() (list []health.Unconfirmed) {
	for _, d := range p.Doubts() {
		list = append(list, health.Unconfirmed{ID: d.ID, Why: d.Why(), Remedy: d.Remedy()})
	}
	return list
}
