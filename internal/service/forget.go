package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// ForgetTimeout is the most that one call to forget a group may take: Graphiti first
	// works off what it has accepted.
	ForgetTimeout = 5 * time.Minute

	// emptyTimeout bounds the part of a forget before the memory is called, even if
	// nobody waits any more. Other replicas may not answer; they are waited for again at
	// the end.
	emptyTimeout = time.Minute

	// What could not be forgotten is tried again after retryFirst, and after
	// twice as long each time it fails again, up to retryLast.
	retryFirst = time.Second
	retryLast  = 5 * time.Minute
)

// Forgotten says what was forgotten: a group, or what was said in a session in it.
type Forgotten struct {
	Group   string `json:"group"`
	Session string `json:"session,omitempty"` // only what was said in the session; empty: the whole group

	Message string   `json:"message,omitempty"` // that one message, and nothing else
	Groups  []string `json:"groups,omitempty"`  // that held it

	Blocks int `json:"blocks"` // inserted blocks that were emptied

	// NamesKept says that the memory keeps names and summaries of what was spoken of in
	// the session. To forget the whole group deletes them.
	NamesKept bool `json:"names_kept,omitempty"`

	Card []string `json:"card,omitempty"` // lines that were taken off the card, and nothing else
}

// Forget empties one group, or deletes what was said in a session in it, or one message.
// Or it takes a line off a card and does nothing else. When it ends, nothing that was
// under way when it began is recalled any more.
//
// It raises the generation of the group, so that nothing older is written. Then it
// empties decisions and notes, the queue, and the memory. Nothing of the group is
// recalled until a look proves that nothing is left. All of this outlives the process:
// if something fails, it is tried again.
func (sv *Service) Forget(ctx context.Context, s Selector) (Forgotten, error) {
	f := Forgotten{Group: s.Group, Session: s.Session}
	if s.Card != "" {
		lines, err := sv.takeOff(ctx, s)
		f.Card = lines
		return f, err
	}
	if s.Message != "" {
		return sv.forgetMessage(ctx, s)
	}
	if err := s.checkOne(); err != nil {
		return f, err
	}
	part, own, err := sv.partOf(ctx, s)
	if err == nil && own { // the session's own group, as a whole
		f.Blocks, err = sv.forget(ctx, ledger.Part{Group: s.Group})
	}
	if err != nil {
		return f, err
	}
	more, err := sv.forget(ctx, part)
	f.Blocks += more
	f.NamesKept = err == nil && f.Session != "" && !own && sv.o.Memory.KeepsNames(ctx, s.Group)
	return f, err
}

// forget returns how many inserted blocks it emptied.
func (sv *Service) forget(ctx context.Context, part ledger.Part) (blocks int, err error) {
	ctx, cancel := context.WithTimeout(ctx, ForgetTimeout)
	defer cancel()
	f := cache.Forget{Group: part.Group, Session: part.Session, Owner: part.Owner, Message: part.Message, Scope: part.Scope()}
	defer sv.goOn() // with what fails here
	defer sv.inHand(f)()
	blocks, err = sv.try(ctx, f)
	if err != nil {
		err = notForgotten(err)
	}
	return blocks, err
}

// try forgets something, or goes on with it, and returns how many blocks it
// emptied.
func (sv *Service) try(ctx context.Context, f cache.Forget) (blocks int, err error) {
	var deaf error
	if !f.Emptied {
		if blocks, f, deaf = sv.empty(ctx, f); f.Generation == 0 {
			return blocks, deaf
		}
	}
	part := ledger.Part{Group: f.Group, Session: f.Session, Owner: f.Owner, Message: f.Message}
	if err := sv.o.Pipeline.Forget(ctx, part, f.Generation); err != nil || !f.Emptied {
		return blocks, errors.Join(deaf, err)
	}
	return blocks, sv.o.State.Generations.End(ctx, f)
}

// empty raises a generation, and empties everything but the queue and the
// memory. Which decisions show what was said in a session is not known, so that
// all of the group's lose their block. For one message none does: its text was sent
// in those conversations, and without the block their beginnings would change. With an
// error it may have been done in part.
func (sv *Service) empty(ctx context.Context, f cache.Forget) (blocks int, raised cache.Forget, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), emptyTimeout)
	defer cancel()
	f, err = sv.o.State.Generations.Raise(ctx, f)
	if f.Generation == 0 {
		return 0, f, err
	}
	var failed error
	if f.Message == "" {
		blocks, failed = sv.o.State.Decisions.Forget(ctx, f.Group)
	}
	failed = errors.Join(failed, sv.o.State.Snapshots.Forget(ctx, f.Scope))
	sv.o.Facts.DropGroup(f.Group)
	if failed != nil {
		return blocks, f, errors.Join(err, failed)
	}
	// What was read meanwhile does not count, nor what was said in answer to it.
	f.Emptied = true
	again, err := sv.o.State.Generations.Raise(ctx, f)
	if again.Generation == 0 {
		f.Emptied = false
		return blocks, f, err
	}
	return blocks, again, err
}

// notForgotten says what follows from a group that is not proven to be forgotten.
func notForgotten(err error) error {
	text := "not forgotten: %w; until it is, nothing of this group is recalled and new turns for it wait; the proxy retries by itself, also after a restart"
	if to := graphiti.Remedy(err); to != "" {
		return fmt.Errorf(text+"; to do: %s", err, to)
	}
	return fmt.Errorf(text, err)
}

// Recallable returns the groups without those that have a forget under way.
func (sv *Service) Recallable(reads []graphiti.Target) []graphiti.Target {
	return slices.DeleteFunc(slices.Clone(reads), func(t graphiti.Target) bool { return sv.o.State.Generations.Blocks(t.Group) })
}

// inHand keeps finishForgets from what a command forgets, until its end.
func (sv *Service) inHand(f cache.Forget) (done func()) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	key := f.Group + "\n" + f.Scope
	sv.commands[key]++
	return func() {
		sv.mu.Lock()
		defer sv.mu.Unlock()
		if sv.commands[key]--; sv.commands[key] == 0 {
			delete(sv.commands, key)
		}
	}
}

// goOn wakes finishForgets.
func (sv *Service) goOn() {
	select {
	case sv.wake <- struct{}{}:
	default:
	}
}

// finishForgets goes on with what could not be forgotten, in an earlier process,
// on another replica, or while the memory was down. It ends with Close.
func (sv *Service) finishForgets() {
	defer close(sv.ended)
	for pause := retryFirst; ; {
		wait := (<-chan time.Time)(nil)
		if len(sv.o.State.Generations.UnderWay()) > 0 {
			wait = time.After(pause)
		}
		select {
		case <-sv.base.Done():
			return
		case <-sv.wake:
			pause = retryFirst
			continue
		case <-wait:
		}
		for _, f := range sv.o.State.Generations.UnderWay() {
			if sv.mine(f) {
				pause = min(2*pause, retryLast)
				sv.tryAgain(f)
			}
		}
	}
}

func (sv *Service) tryAgain(f cache.Forget) {
	ctx, cancel := context.WithTimeout(sv.base, ForgetTimeout)
	defer cancel()
	if _, err := sv.try(ctx, f); err == nil {
		sv.o.Log.Info("memory forget succeeded after a failure", "group", f.Group)
	} else if sv.base.Err() == nil {
		sv.o.Log.Warn("memory forget failed again, retrying", "group", f.Group, "error", err)
	}
}

// mine reports whether this process goes on with something: the replica that
// delivers does, unless a command is at it.
func (sv *Service) mine(f cache.Forget) bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return sv.commands[f.Group+"\n"+f.Scope] == 0 && sv.o.Pipeline.Status().Delivers
}
