package capture

import (
	"container/heap"
	"time"
)

// agenda holds lanes by when something is due for them.
type agenda struct {
	which int
	lanes []*lane
}

const (
	agendaFresh = iota
	agendaOlder
	agendaLooks
	agendaAlone
	agendas
)

// due is a lane for which it is time; when there is none, wait is shortened to
// when there will be.
func (a *agenda) due(now time.Time, wait *time.Duration) *lane {
	if len(a.lanes) == 0 {
		return nil
	}
	l := a.lanes[0]
	if d := l.at[a.which].Sub(now); d > 0 {
		*wait = min(*wait, d)
		return nil
	}
	return l
}

func (a *agenda) set(l *lane, in bool, at time.Time) {
	l.at[a.which] = at
	switch i := l.pos[a.which] - 1; {
	case in && i < 0:
		heap.Push(a, l)
	case in:
		heap.Fix(a, i)
	case i >= 0:
		heap.Remove(a, i)
	}
}

// What follows implements heap.Interface.

func (a *agenda) Len() int { return len(a.lanes) }
func (a *agenda) Less(i, j int) bool {
	return a.lanes[i].at[a.which].Before(a.lanes[j].at[a.which])
}

func (a *agenda) Swap(i, j int) {
	a.lanes[i], a.lanes[j] = a.lanes[j], a.lanes[i]
	a.lanes[i].pos[a.which], a.lanes[j].pos[a.which] = i+1, j+1
}

func (a *agenda) Push(x any) {
	l := x.(*lane) //nolint:forcetypeassert // the heap's only type
	a.lanes = append(a.lanes, l)
	l.pos[a.which] = len(a.lanes)
}

func (a *agenda) Pop() any {
	l := a.lanes[len(a.lanes)-1]
	a.lanes = a.lanes[:len(a.lanes)-1]
	l.pos[a.which] = 0
	return l
}
