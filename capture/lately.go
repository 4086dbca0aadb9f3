package capture

import "github.com/graphiti-proxy/graphiti-proxy/graphiti"

// latelyMax bounds each of the two generations of turns that are remembered,
// one for each group.
const latelyMax = 20000

// lately holds, of the turns that were added last, which groups they are for:
// clients repeat requests, and most repeats need not be looked up in the file.
// Two agents, or two systems, may have the same turn in one session, so that
// the turn alone says nothing.
type lately struct{ new, old map[string]struct{} }

func latelyKey(turn, group string) string { return turn + "\x00" + group }

// has reports whether a turn was added lately for all of those groups.
func (l *lately) has(turn string, targets []graphiti.Target) bool {
	for i := range targets {
		key := latelyKey(turn, targets[i].Group)
		if _, ok := l.new[key]; ok {
			continue
		}
		if _, ok := l.old[key]; !ok {
			return false
		}
	}
	return len(targets) > 0
}

func (l *lately) add(turn string, targets []graphiti.Target) {
	if l.new == nil || len(l.new) >= latelyMax {
		l.old, l.new = l.new, make(map[string]struct{})
	}
	for i := range targets {
		l.new[latelyKey(turn, targets[i].Group)] = struct{}{}
	}
}

// AddedLately reports whether a turn was added not long ago for all of those
// groups: its answer need not be read again. It does not ask the file.
func (p *Pipeline) AddedLately(turn string, targets []graphiti.Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lately.has(turn, targets)
}

// ForgetLately has turns looked up in the file that were added lately: they may
// have been forgotten.
func (p *Pipeline) ForgetLately() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lately = lately{}
}
