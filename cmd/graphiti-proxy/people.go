package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// people are the registered people, and the doubts about who they are.
type people struct {
	identity.Registry
	doubts atomic.Pointer[[]identity.Doubt] // of the last judge
	base   context.Context                  //nolint:containedctx // ends with the app

	mu       sync.Mutex // guards what follows; held from judge to take
	retrying bool       // retryPeople runs, or must not begin because the app ends
	retries  sync.WaitGroup
}

const (
	// readPeopleWithin bounds what a start, a reload and a replica's event wait
	// for the state.
	readPeopleWithin = 10 * time.Second

	// retryPeopleEvery is how long after a failed read the state is read again.
	retryPeopleEvery = time.Second
)

// judge compares people with the proofs in the state. Its caller holds a.people.mu
// until take.
func (a *app) judge(p *cache.Proofs, list []identity.Person) (identity.Judged, error) {
	if len(list) == 0 {
		return identity.Judged{}, nil
	}
	ctx, cancel := context.WithTimeout(a.people.base, readPeopleWithin)
	defer cancel()
	known, err := p.All(ctx)
	if err != nil {
		return identity.Judged{}, err
	}
	return identity.Judge(list, known), nil
}

// take puts the judged people into use, and logs who has no memory.
func (a *app) take(p *cache.Proofs, j identity.Judged) {
	ctx, cancel := context.WithTimeout(a.people.base, readPeopleWithin)
	defer cancel()
	a.people.Take(j)
	a.people.doubts.Store(&j.Doubts)
	if err := p.Claim(ctx, j.Claims); err != nil {
		a.log.Warn("a person who is renamed in identity.users_file may not be noticed until the next reload", "error", err)
	}
	if len(j.Doubts) == 0 {
		return
	}
	var ids []string
	for _, d := range j.Doubts {
		ids = append(ids, d.ID)
	}
	attrs := []any{"people", ids}
	if d := &j.Doubts[0]; len(ids) == 1 && d.Named() {
		attrs = append(attrs, "why", d.Why(), "to_do", d.Remedy())
	} else {
		attrs = append(attrs, "to_do", "run graphiti-proxy status: it says of each of them what to do")
	}
	a.log.Warn("people of identity.users_file have no memory until you confirm who they are", attrs...)
}

// register puts the people of the configuration into use at the start. While the
// state cannot be read they have no memory.
func (a *app) register(p *cache.Proofs, list []identity.Person) {
	base, cancel := context.WithCancel(context.Background())
	a.people.base = base
	a.OnClose("people", func(context.Context) error {
		cancel()
		a.people.mu.Lock()
		a.people.retrying = true // no more
		a.people.mu.Unlock()
		a.people.retries.Wait()
		return nil
	})
	a.people.Take(identity.DoubtAll(list))
	a.people.mu.Lock()
	defer a.people.mu.Unlock()
	if a.checkLocked(p) != nil {
		a.quiet.Warn("people of identity.users_file have no memory until the state can be read")
	}
}

// checkPeople judges the people again. If the state cannot be read, nothing changes,
// and it tries again until it can.
func (a *app) checkPeople(p *cache.Proofs) error {
	a.people.mu.Lock()
	defer a.people.mu.Unlock()
	return a.checkLocked(p)
}

func (a *app) checkLocked(p *cache.Proofs) error {
	j, err := a.judge(p, a.people.People())
	if err == nil {
		a.take(p, j)
		return nil
	}
	a.quiet.Warn("compare identity.users_file with whose memory is whose failed, retrying", "error", err)
	if !a.people.retrying {
		a.people.retrying = true
		a.people.retries.Go(func() { a.retryPeople(p) }) // ends with the first success, or with the app
	}
	return err
}

func (a *app) retryPeople(p *cache.Proofs) {
	for failed := true; failed; {
		select {
		case <-a.people.base.Done():
			return
		case <-time.After(retryPeopleEvery):
		}
		a.people.mu.Lock()
		failed = a.checkLocked(p) != nil
		a.people.retrying = failed
		a.people.mu.Unlock()
	}
}

// registrar implements the service's interface to the registered people.
type registrar struct {
	*app
	proofs *cache.Proofs
}

// errGone says that a reload has just removed the person.
var errGone = errors.New("nobody has this id any more")

func (r registrar) find(id string) *identity.Person {
	for _, p := range r.people.People() {
		if p.ID == id {
			return &p
		}
	}
	return nil
}

// MemoryOf returns the key of the memory of the person with an id.
func (r registrar) MemoryOf(id string) (string, bool) {
	if p := r.find(id); p != nil {
		return p.Memory(), true
	}
	return "", false
}

// Accept confirms a person: it makes the keys and identities that they have now the
// proofs of their memory.
func (r registrar) Accept(ctx context.Context, id string) error {
	p := r.find(id)
	if p == nil {
		return errGone
	}
	if err := r.proofs.Assign(ctx, p.Memory(), p.Proofs()); err != nil {
		return err
	}
	return r.checkPeople(r.proofs)
}

// Check judges the people again.
func (r registrar) Check() { _ = r.checkPeople(r.proofs) }

// unconfirmed lists the people in doubt, for the status.
func (a *app) unconfirmed() (list []health.Unconfirmed) {
	doubts := a.people.doubts.Load()
	if doubts == nil {
		return nil
	}
	for _, d := range *doubts {
		list = append(list, health.Unconfirmed{ID: d.ID, Why: d.Why(), Remedy: d.Remedy()})
	}
	return list
}
