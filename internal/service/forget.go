package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

const (
	// ForgetTimeout bounds one forget. ForgetRequest.Wait uses all of it.
	ForgetTimeout = 5 * time.Minute

	// lookFor is how long a forget waits for the deletion in Graphiti otherwise. The deletion
	// here is done before.
	lookFor = 2 * time.Second

	// A failed forget is retried after retryFirst, and later after twice the previous pause, up
	// to retryLast.
	retryFirst = time.Second
	retryLast  = 5 * time.Minute
)

// Forgotten describes a forget.
type Forgotten struct {
	noted
	Group   string `json:"group"`
	Session string `json:"session,omitempty"` // "" for the whole group

	Message string   `json:"message,omitempty"` // the only forgotten message
	Groups  []string `json:"groups,omitempty"`  // groups of the message
	Also    int      `json:"also,omitempty"`    // other conversations with a copy of it, which is forgotten too

	Blocks int `json:"blocks"` // emptied blocks

	// Withdrawn is the number of messages, conversations or groups that may still be in Graphiti, and
	// Remaining is the proxy's next step for them, with the last error.
	Withdrawn int    `json:"withdrawn,omitempty"`
	Remaining string `json:"remaining,omitempty"`

	// NamesKept reports whether Graphiti may retain names and summaries. Forgetting the whole
	// group deletes them.
	NamesKept bool `json:"names_kept,omitempty"`

	Receipt *Receipt `json:"receipt,omitempty"` // of a group or a session
}

// Left returns what may still be in Graphiti.
func (f *Forgotten) Left() int { return f.Withdrawn }

// Remaining describes n forgotten parts that may be in Graphiti, or returns "" without one.
func Remaining(n int) string {
	if n == 0 {
		return ""
	}
	return "deleted here; " + terminal.Count(n, "forgotten part") + " may still be in Graphiti or appear there later; the proxy then deletes it, and graphiti-proxy status names any problem"
}

// Forget empties one group, deletes a session's messages in it, or deletes one message. When it returns without an error, all of it is deleted here, and no write that began
// before restores it.
//
// It raises the group's generation, which rejects older writes. Then it empties decisions and
// notes, and the memory; recall skips the group meanwhile. All of this survives the process:
// failures are retried. Deletion in Graphiti follows.
func (sv *Service) Forget(ctx context.Context, in *ForgetRequest) (f Forgotten, err error) {
	s := in.Selector
	f.Group, f.Session = s.Group, s.Session
	if s.Message != "" {
		id := s.Message
		s.Message = ""
		many, err := sv.Change(ctx, &ManyRequest{Selector: s, Do: map[bool]string{false: whatForget, true: whatRemove}[in.Undoable], Messages: []string{id}})
		if err == nil {
			sv.lookAt(ctx, &many.Forgotten, in.Wait)
		}
		return many.Forgotten, err
	}
	if err := s.checkOne(); err != nil {
		return f, err
	}
	part, own, err := sv.partOf(ctx, s)
	if err != nil {
		return f, err
	}
	all := part
	if own { // the session's own group
		all = ledger.Part{Group: s.Group}
	}
	made := Change{What: whatForget, Parts: []ChangedPart{{Group: s.Group}}}
	if in.Undoable {
		err = sv.copyFor(ctx, &in.Selector, &made, func(f func(Record) error) error { return sv.export(ctx, all, f) })
	} else {
		err = sv.dropCopiesOf(ctx, all)
	}
	if err != nil {
		return f, err
	}
	receipt, uncounted := sv.beginReceipt(ctx, part)
	if own {
		f.Blocks, err = sv.forget(ctx, ledger.Part{Group: s.Group})
	}
	if err != nil {
		return f, err
	}
	more, err := sv.forget(ctx, part)
	if f.Blocks += more; err == nil {
		f.change = made
		sv.lookAt(ctx, &f, in.Wait)
	}
	switch {
	case err != nil || in.Undoable:
	case uncounted != nil:
		sv.o.Log.Warn("count deleted messages failed, the deletion has no receipt", "group", s.Group, "error", uncounted)
	case receipt != nil:
		f.Receipt = receipt
		receipt.sign(&f, sv.o.Secret, sv.o.Graph != nil)
	}
	return f, err
}

// lookAt waits for the deletion in Graphiti, and completes f.
func (sv *Service) lookAt(ctx context.Context, f *Forgotten, wait bool) {
	if sv.o.Graph == nil {
		return
	}
	most := lookFor
	if wait {
		most = ForgetTimeout
	}
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	groups := f.Groups
	if len(groups) == 0 {
		groups = []string{f.Group}
	}
	for _, g := range groups {
		left, err := sv.o.Pipeline.Withdrawn(short, g, wait)
		f.Withdrawn += left
		f.Remaining = cmp.Or(refused(err), Remaining(f.Withdrawn))
		if d := sv.o.Pipeline.Status().Diagnosis; f.Withdrawn > 0 && graphiti.Remedy(err) == "" && d != graphiti.NoDiagnosis {
			f.Remaining += "; probably " + d.Says() + "; to do: " + d.Remedy()
		}
	}
	f.NamesKept = f.Message+f.Session != ""
}

// refused describes a failed deletion in Graphiti, or returns "" without an error.
func refused(err error) string {
	if err == nil {
		return ""
	}
	why := err.Error()
	if to := graphiti.Remedy(err); to != "" {
		why += "; to do: " + to
	}
	return "deleted here, and not in Graphiti: " + why + "; the proxy retries until it succeeds"
}

// forget deletes a part here. It returns the number of emptied blocks.
func (sv *Service) forget(ctx context.Context, part ledger.Part) (blocks int, err error) {
	if err := sv.released(ctx, part); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	f := cache.Forget{Group: part.Group, Session: part.Session, Owner: part.Owner, Message: part.Message, Scope: part.Scope()}
	defer sv.goOn() // retry a failure
	defer sv.inHand(f)()
	blocks, err = sv.try(ctx, f)
	switch {
	case err != nil && !sv.o.State.Generations.Blocks(part.Group): // no forget is stored
		err = fmt.Errorf("not forgotten: %w; nothing has changed: repeat the command", err)
	case err != nil:
		err = fmt.Errorf("not forgotten: %w; until it succeeds, this group is not recalled; the proxy retries automatically, also after a restart", err)
	}
	return blocks, err
}

// try starts or continues a forget. It returns the number of emptied blocks.
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

// empty raises the generation, and empties everything but the queue and the memory. Decisions do
// not record the sessions of their pieces, so all decisions of the group lose their blocks.
// Forgetting one message empties no block: its text is in those conversations, whose beginnings
// must not change. An error may leave a part done.
func (sv *Service) empty(ctx context.Context, f cache.Forget) (blocks int, raised cache.Forget, err error) {
	f, err = sv.o.State.Generations.Raise(ctx, f)
	if f.Generation == 0 {
		return 0, f, err
	}
	var failed error
	if f.Message == "" {
		blocks, failed = sv.o.State.Decisions.Forget(ctx, f.Group)
	}
	failed = errors.Join(failed, sv.o.State.Snapshots.Forget(ctx, f.Scope))
	if failed != nil {
		return blocks, f, errors.Join(err, failed)
	}
	// Results read meanwhile, and their answers, are outdated too.
	f.Emptied = true
	again, err := sv.o.State.Generations.Raise(ctx, f)
	if again.Generation == 0 {
		f.Emptied = false
		return blocks, f, err
	}
	return blocks, again, err
}

// inHand hides a command's forget from finishForgets until the command ends.
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

// finishForgets continues unfinished forgets of earlier processes, until Close.
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

// mine reports whether this process continues a forget: only the delivering process does, unless
// a command runs it.
func (sv *Service) mine(f cache.Forget) bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return sv.commands[f.Group+"\n"+f.Scope] == 0 && sv.o.Pipeline.Status().Delivers
}

// Changed applies a forget of another replica, or a changed proof of a person. It is called again
// after an error.
func (sv *Service) Changed(ctx context.Context) error {
	sv.o.Pipeline.Doubt()
	err := errors.Join(sv.o.State.Generations.Refresh(ctx), sv.o.People.Check(ctx))
	sv.goOn()
	return err
}
