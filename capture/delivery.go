package capture

import (
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Delivery is what became of one turn in one group.
type Delivery struct {
	Trace    string // of the turn
	Group    string
	Began    time.Time // when it was handed over
	Verified bool      // it was seen there
	Err      error     // it was not kept
}

var (
	errLost = errors.New("lost by the memory")
	errDead = errors.New("refused by the memory")
)

// tell tells of deliveries that began at a time each.
func (p *Pipeline) tell(group string, entries []ledger.Entry, began func(i int) time.Time, verified bool, err error) {
	if p.opts().Told == nil {
		return
	}
	for i := range entries {
		if t := entries[i].Turn.Trace; t != "" {
			p.opts().Told(Delivery{Trace: t, Group: group, Began: began(i), Verified: verified, Err: err})
		}
	}
}

// handedAt tells when turns were handed over.
func handedAt(turns []*under) func(i int) time.Time {
	return func(i int) time.Time { return turns[i].at }
}
