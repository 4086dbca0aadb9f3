package deliver

import (
	"slices"
	"time"
)

// The pace of delivery covers the last minutes, and is known after some seconds.
const (
	paceOver  = 5 * time.Minute
	paceAfter = 10 * time.Second
)

// pace counts finished turns by the second.
type pace []finished

type finished struct {
	at    time.Time
	turns int
}

func (p *pace) add(turns int, now time.Time) {
	*p = slices.DeleteFunc(*p, func(f finished) bool { return now.Sub(f.at) > paceOver })
	if n := len(*p); n > 0 && now.Sub((*p)[n-1].at) < time.Second {
		(*p)[n-1].turns += turns
		return
	}
	*p = append(*p, finished{now, turns})
}

// perMinute returns how many turns a minute are delivered, or 0 if that is unknown. The first
// turns only begin the measurement.
func (p pace) perMinute(now time.Time) float64 {
	p = p[max(0, slices.IndexFunc(p, func(f finished) bool { return now.Sub(f.at) <= paceOver })):]
	if len(p) < 2 || now.Sub(p[0].at) > paceOver || now.Sub(p[0].at) < paceAfter {
		return 0
	}
	turns := 0
	for _, f := range p[1:] {
		turns += f.turns
	}
	return float64(turns) / now.Sub(p[0].at).Minutes()
}
