package deliver

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// errRefusesAll means that the memory accepts nothing at all, so the turns are not the
// cause.
var errRefusesAll = errors.New("the memory rejects all messages")

const refusalRemedy = "run graphiti-proxy test-connection: this version of Graphiti, or a gateway in front of it, expects other messages than the proxy sends"

// deadRemedy shows the operator the dead letters.
const deadRemedy = "run graphiti-proxy queue list --state dead"

// refusesAll reports whether the memory rejects a batch for a reason outside of it: it also
// rejects a barrier. Then no turn becomes a dead letter.
func (l *Loop) refusesAll(ctx context.Context, b *batch) bool {
	if b.accepted {
		return false
	}
	err := l.writeBarrier(ctx, b.w, false)
	l.mu.Lock()
	first := err != nil && time.Since(l.refused) > time.Minute // else already logged
	if b.accepted = err == nil; err != nil {
		l.refused = time.Now()
	}
	l.mu.Unlock()
	if first {
		l.o.Log.Error("memory rejects all messages, delivery paused", "to_do", refusalRemedy)
	}
	return err != nil
}

// remedyOf returns the remedy for a failed call.
func remedyOf(err error) string {
	if errors.Is(err, errRefusesAll) {
		return refusalRemedy
	}
	return cmp.Or(graphiti.Remedy(err), "nothing yet: delivery retries by itself; graphiti-proxy test-connection checks the memory")
}

// unsent reports whether a failed call certainly had no effect.
func unsent(err error) bool {
	return errors.Is(err, ErrNotTried) || errors.Is(err, errRefusesAll) || graphiti.Unsent(err)
}
