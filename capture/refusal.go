package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxRefused is how many turns in a row are put aside without another thought.
const maxRefused = 3

// errRefusesAll says that it is not the turns: nothing at all is accepted.
var errRefusesAll = errors.New("the memory refuses turn after turn and accepts nothing")

// refused are the turns that were put aside since something was accepted last.
type refused struct {
	numbers []int64
	all     bool // a message of our own was not accepted either
}

// write hands messages over. Where turn after turn is refused and nothing is
// accepted, a message of our own tells whether that is for what they say. If it
// is not, they were put aside for nothing, and wait again.
func (p *Pipeline) write(ctx context.Context, group string, messages []graphiti.Message) error {
	m := p.opts().Memory
	err := m.Write(ctx, group, messages)
	if err == nil {
		p.accepted()
		return nil
	}
	if graphiti.Retryable(err) || m.Durable() || !p.doubted() {
		return err
	}
	name, start := probeName(), p.ticks(nil)
	if other := m.Write(ctx, p.probeGroup, probeMessage(name)); other != nil {
		p.retryRefused()
		return fmt.Errorf("%w: %v", errRefusesAll, err) //nolint:errorlint // it must not be taken for one about the turn
	}
	p.mu.Lock()
	p.state.awaitProbe(name, start, time.Now())
	p.mu.Unlock()
	p.accepted()
	return err
}

func (p *Pipeline) accepted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = refused{}
}

// doubted reports whether it is doubted that turns are refused for what they
// say.
func (p *Pipeline) doubted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused.all || len(p.refused.numbers) >= maxRefused
}

// retryRefused has turns wait again that were put aside while nothing was
// accepted.
func (p *Pipeline) retryRefused() {
	p.mu.Lock()
	numbers, first := p.refused.numbers, !p.refused.all
	p.refused = refused{all: true}
	p.mu.Unlock()
	if first {
		p.opts().Log.Error("the memory refuses turn after turn, and a message of our own too; nothing is put aside until it accepts something", "to_do", refusalRemedy)
	}
	if len(numbers) == 0 {
		return
	}
	if _, err := p.Retry(numbers); err != nil {
		p.opts().Log.Warn("turns that were put aside cannot be taken back; see graphiti-proxy queue retry", "error", err)
	}
}

const refusalRemedy = "run graphiti-proxy test-connection: Graphiti's version, or what stands before it, takes other messages than this proxy sends"

// remedyOf says what to do about a failed call; empty where that is not known.
func remedyOf(err error) string {
	if errors.Is(err, errRefusesAll) {
		return refusalRemedy
	}
	return graphiti.Remedy(err)
}

// unsent reports whether a failed hand-over surely had no effect.
func unsent(err error) bool {
	return errors.Is(err, errNotTried) || errors.Is(err, errRefusesAll) || graphiti.Unsent(err)
}
