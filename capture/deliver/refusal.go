package deliver

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// errRefusesAll says that it is not the turns: nothing at all is accepted.
var errRefusesAll = errors.New("the memory refuses turn after turn and accepts nothing")

const refusalRemedy = "run graphiti-proxy test-connection: Graphiti's version, or what stands before it, takes other messages than this proxy sends"

// refusesAll reports whether the memory refuses a batch for a reason that is
// not in it: it refuses a message of our own too. Then nothing is put aside.
func (l *Loop) refusesAll(ctx context.Context, b *batch) bool {
	if b.accepted {
		return false
	}
	err := l.writeBarrier(ctx, b.w, false)
	l.mu.Lock()
	first := err != nil && time.Since(l.refused) > time.Minute // else it was logged
	if b.accepted = err == nil; err != nil {
		l.refused = time.Now()
	}
	l.mu.Unlock()
	if first {
		l.o.Log.Error("the memory refuses turn after turn, and a message of our own too; nothing is put aside until it accepts something", "to_do", refusalRemedy)
	}
	return err != nil
}

// remedyOf says what to do about a failed call.
func remedyOf(err error) string {
	if errors.Is(err, errRefusesAll) {
		return refusalRemedy
	}
	return cmp.Or(graphiti.Remedy(err), "nothing yet: it is tried again by itself; graphiti-proxy test-connection shows what answers")
}

// unsent reports whether a failed call surely had no effect.
func unsent(err error) bool {
	return errors.Is(err, ErrNotTried) || errors.Is(err, errRefusesAll) || graphiti.Unsent(err)
}
