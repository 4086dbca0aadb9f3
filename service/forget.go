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

// ForgetTimeout is how long one call to forget a group may take: as long as
// Graphiti needs for what it has accepted.
const ForgetTimeout = 5 * time.Minute

// earlyTimeout is how long other replicas are waited for before the memory is
// asked to forget. At the end they are waited for again.
const earlyTimeout = 10 * time.Second

// Forgotten says what was forgotten: a group, or what was said in a session in it.
type Forgotten struct {
	Group   string `json:"group"`
	Session string `json:"session,omitempty"` // what was said in it, and not the whole group
	Blocks  int    `json:"blocks"`            // inserted blocks that were emptied
}

// Forget empties one group, or what was said in it in a session.
func (sv *Service) Forget(ctx context.Context, s Selector) (Forgotten, error) {
	f := Forgotten{Group: s.Group, Session: s.Session}
	err := s.checkOne()
	switch {
	case err != nil:
	case s.Session == "":
		f.Blocks, err = sv.forgetGroup(ctx, s.Group)
	default:
		f.Blocks, err = sv.forgetSession(ctx, s)
	}
	return f, err
}

// forgetGroup empties a group everywhere, and returns how many inserted blocks it
// emptied. What is on its way when it begins is not
// recalled any more when it ends.
func (sv *Service) forgetGroup(ctx context.Context, group string) (int, error) {
	return sv.forget(ctx, ledger.Part{Group: group})
}

// forgetSession empties what was said in a session in one of its groups. A group of the session's own is
// emptied as a whole.
func (sv *Service) forgetSession(ctx context.Context, s Selector) (blocks int, err error) {
	part, own, err := sv.partOf(ctx, s)
	if err != nil {
		return 0, err
	}
	if own {
		if blocks, err = sv.forgetGroup(ctx, s.Group); err != nil {
			return blocks, err
		}
	}
	more, err := sv.forget(ctx, part)
	return blocks + more, err
}

// forget forgets a part. From its beginning until it is proven to be gone nothing
// of the group is recalled, over restarts.
func (sv *Service) forget(ctx context.Context, part ledger.Part) (blocks int, err error) {
	ctx, cancel := context.WithTimeout(ctx, ForgetTimeout)
	defer cancel()
	stone := cache.Tombstone{Group: part.Group, Mark: part.Mark()}
	if err := sv.o.State.Tombstones.Set(ctx, stone); err != nil {
		return 0, err
	}
	// Conversations lose their blocks before the memory is asked, which may take
	// minutes or be cut off. What fails here is done again at the end.
	early, stop := context.WithTimeout(ctx, earlyTimeout)
	blocks, _ = sv.elsewhere(early, part)
	stop()
	err = sv.o.Pipeline.Forget(ctx, part, func(ctx context.Context) error {
		more, err := sv.elsewhere(ctx, part)
		blocks += more
		return err
	})
	if err == nil {
		err = sv.o.State.Tombstones.Clear(ctx, stone)
	}
	if err != nil {
		err = notForgotten(err)
	}
	return blocks, errors.Join(err, sv.withhold(ctx))
}

// notForgotten says what follows from a group that is not proven to be forgotten.
func notForgotten(err error) error {
	to := graphiti.Remedy(err)
	if to != "" {
		to += "; then "
	}
	return fmt.Errorf("not forgotten: %w; until it is, nothing of this group is recalled, and new turns for it wait; to do: %srun it again, which also deletes what was said since", err, to)
}

// withhold keeps turns from the groups that have a tombstone, so that a look
// shows only what was to be forgotten.
func (sv *Service) withhold(ctx context.Context) error {
	sv.withholding.Lock()
	defer sv.withholding.Unlock()
	groups, err := sv.o.State.Tombstones.Groups(ctx)
	if err != nil {
		return err
	}
	sv.o.Pipeline.Withhold(groups)
	return nil
}

// Recallable leaves the groups of which something may be shown.
func (sv *Service) Recallable(reads []graphiti.Target) []graphiti.Target {
	return slices.DeleteFunc(slices.Clone(reads), func(t graphiti.Target) bool { return sv.o.State.Tombstones.Has(t.Group) })
}

// elsewhere empties what is kept outside of the memory itself. When it returns
// no replica shows any of it. Which blocks show what was said in a session is
// not known, so that all of the group's go.
func (sv *Service) elsewhere(ctx context.Context, part ledger.Part) (blocks int, err error) {
	// Searches that began before the group was empty, and what they left; then
	// the blocks that were made of what they found, and those of plans which
	// had that.
	sv.o.Planner.Forgot()
	sv.o.Facts.DropGroup(part.Group)
	// A replica that does not answer keeps nothing from the others.
	failed := errors.Join(sv.dropUnderWay(part), sv.tellForgotten(ctx, part))
	blocks, err = sv.o.State.Blocks.Forget(part.Group)
	err = errors.Join(failed, err, sv.o.State.Snapshots.Forget(part.Mark()), sv.tellForgotten(ctx, part), sv.o.Facts.Forget(part.Group))
	sv.o.Planner.Forgot()
	return blocks, err
}

// dropUnderWay drops what this process knows of turns that have not ended.
func (sv *Service) dropUnderWay(part ledger.Part) error {
	sv.o.Drop(part.Means)
	return sv.o.Open.Forget(part.Means)
}
