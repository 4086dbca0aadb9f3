package capture

import "sync"

// mostInTurn bounds the turns that are written to a group or wait for that: the
// second is on disk as soon as the first is and one commit more. With a third they
// share commits in the ledger, which loses less to a kill.
const mostInTurn = 2

// inTurn has those who write straight to a group do so one after another. Else the
// second would go to the ledger and be delivered from there, and with it all that
// come until that has been done.
type inTurn struct {
	mu     sync.Mutex
	groups map[string]*writing
}

// writing is what is being written to a group, or waits for that.
type writing struct {
	sync.Mutex
	turns int
}

// enter waits until nobody else writes to a group, and returns what ends that for
// the caller. It does not where too much is written there: then ok is false.
func (q *inTurn) enter(group string, turns int) (leave func(), ok bool) {
	q.mu.Lock()
	w := q.groups[group]
	if w == nil {
		w = &writing{}
		q.groups[group] = w
	} else if w.turns+turns > mostInTurn {
		q.mu.Unlock()
		return nil, false
	}
	w.turns += turns
	q.mu.Unlock()
	w.Lock()
	return func() {
		w.Unlock()
		q.mu.Lock()
		defer q.mu.Unlock()
		if w.turns -= turns; w.turns == 0 {
			delete(q.groups, group)
		}
	}, true
}
