package deliver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// clock is the start time of all tests of machines.
var clock = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sim simulates a ledger, the machines, and a Graphiti with all known faults, in its own
// time.
type sim struct {
	t      *rapid.T
	now    time.Time
	apart  bool
	takes  time.Duration
	behind time.Duration // lag of the memory's clock
	poison map[int64]bool
	faults int // number of faults left

	sight    sight
	holds    holds
	machines map[string]*machine

	pending map[string][]Item // by group, in order
	dead    map[int64]bool
	done    map[int64]bool
	retried map[int64]bool // turns sent again

	queues  map[string][]queued // by worker
	crashed bool                // the only worker, until a restart
	since   time.Time           // time of the crash
	kept    map[string][]queued // by group
	late    []queued            // messages that arrive after their call failed
}

// queued is an accepted message.
type queued struct {
	group  string
	name   string
	number int64 // of its turn, or 0 for a barrier
	said   time.Time
	at     time.Time // when the worker has stored it, or when it arrives
}

func (s *sim) workerOf(group string) string {
	if s.apart {
		return group
	}
	return ""
}

// work lets the workers catch up with the current time.
func (s *sim) work() {
	for len(s.late) > 0 && !s.late[0].at.After(s.now) {
		m := s.late[0]
		s.late = s.late[1:]
		s.accept(m)
	}
	for _, worker := range slices.Sorted(keys(s.queues)) {
		queue := s.queues[worker]
		for len(queue) > 0 && !s.crashed && !queue[0].at.After(s.now) {
			m := queue[0]
			queue = queue[1:]
			switch {
			case !s.poison[m.number] || !strings.HasSuffix(m.name, ".user"):
				s.kept[m.group] = append(s.kept[m.group], m)
			case !s.apart:
				s.crashed, s.since = true, m.at
			}
		}
		s.queues[worker] = queue
	}
}

func (s *sim) accept(m queued) {
	w := s.workerOf(m.group)
	m.at = s.now
	if q := s.queues[w]; len(q) > 0 && q[len(q)-1].at.After(m.at) {
		m.at = q[len(q)-1].at
	}
	m.at = m.at.Add(s.takes)
	s.queues[w] = append(s.queues[w], m)
}

// restart drops the messages queued in the memory.
func (s *sim) restart() {
	s.work()
	s.queues, s.crashed = make(map[string][]queued), false
}

// fault draws one of n faults, or 0 for none.
func (s *sim) fault(n int, what string) int {
	if s.faults == 0 {
		return 0
	}
	f := max(0, rapid.IntRange(-3*n, n).Draw(s.t, what))
	if f > 0 {
		s.faults--
	}
	return f
}

// call sends messages to the memory. doubt reports whether the outcome is unclear, and
// failed whether the call returns an error.
func (s *sim) call(messages []queued) (doubt, failed bool) {
	took := time.Duration(rapid.IntRange(1, 50).Draw(s.t, "took")) * time.Millisecond
	defer func() { s.now = s.now.Add(took); s.work() }()
	accept := func() {
		for _, m := range messages {
			s.accept(m)
		}
	}
	switch s.fault(6, "fault of a call") {
	case 1: // refused, so certainly not stored
		return false, true
	case 2: // accepted and lost
	case 3: // an unclear answer, and stored
		accept()
		return true, true
	case 4: // an unclear answer, and not stored
		return true, true
	case 5: // an unclear answer, and stored late
		at := s.now.Add(took + time.Duration(rapid.IntRange(0, 9).Draw(s.t, "late"))*time.Second)
		for _, m := range messages {
			m.at = at
			s.late = append(s.late, m)
		}
		slices.SortStableFunc(s.late, func(a, b queued) int { return a.at.Compare(b.at) })
		return true, true
	case 6: // the memory restarts
		s.restart()
		accept()
	default:
		accept()
	}
	return false, false
}

func (s *sim) machine(group string) *machine {
	w := s.workerOf(group)
	m := s.machines[w]
	if m == nil {
		m = newMachine(DefaultTiming(4, 5*time.Minute), &s.sight, &s.holds, w, s.now)
		s.machines[w] = m
	}
	return m
}

func (s *sim) view(group string) view {
	v := view{names: make(map[string]bool), clock: s.now.Add(-s.behind)}
	for _, m := range s.kept[group] {
		if !m.said.After(v.clock) {
			v.names[m.name] = true
		}
	}
	return v
}

// perform executes an action of a machine, like the loop does.
func (s *sim) perform(m *machine, a action) {
	s.work()
	switch a.kind {
	case send:
		s.send(m, a)
	case look:
		s.now = s.now.Add(time.Millisecond)
		if s.fault(1, "fault of a look") > 0 {
			m.pollFailed(a.group, s.now)
			break
		}
		fs := m.applyView(a, s.view(a.group.name), s.now)
		s.conclude(m, a.group, &fs)
	case sendBarrier:
		b := sentBarrier{name: fmt.Sprint("barrier", m.position), group: m.barrierGroup("probe"), pos: m.beginBarrier()}
		doubt, failed := s.call([]queued{{group: b.group, name: b.name, said: s.now.Add(-s.behind)}})
		m.barrierSent(b, !failed || doubt, s.now)
	case lookForBarrier:
		if s.fault(1, "fault of a look") > 0 {
			m.barrierUnseen(s.now)
			break
		}
		group := m.barrier.sent[len(m.barrier.sent)-1].group
		if found, _ := m.sawBarriers(group, s.view(group).names, s.now); found {
			s.sight.lists()
		}
	case removeBarrier:
		group := m.barrier.left[0]
		gone := s.fault(1, "fault of a removal") == 0
		if gone {
			s.kept[group] = slices.DeleteFunc(s.kept[group], func(q queued) bool { return q.number == 0 })
		}
		m.removed(group, gone, s.now)
	case settle, probe, nothing:
		s.t.Fatalf("unexpected action %v", a.kind)
	}
	m.done(a)
}

func (s *sim) send(m *machine, a action) {
	all := s.pending[a.group.name]
	items := slices.Clone(all[:min(a.n, len(all))])
	isolate := false
	for i := range items {
		if items[i].isolated(m.timing.MaxLosses) && (i > 0 || !a.single) {
			items, isolate = items[:i], true
			break
		}
	}
	if len(items) == 0 {
		m.sent(a.group, isolate, true, isolate)
		return
	}
	var messages []queued
	for _, it := range items {
		for _, msg := range it.Messages {
			messages = append(messages, queued{group: it.Group, name: msg.Name, number: it.Seq, said: msg.Said})
		}
	}
	began := s.now
	doubt, failed := s.call(messages)
	if !failed || doubt {
		s.pending[a.group.name] = slices.Clone(all[len(items):])
		flights := make([]*flight, len(items))
		for i, it := range items {
			flights[i] = newFlight(it, began)
		}
		m.inFlight(a.group, flights, doubt, a.single, s.now)
	}
	if failed {
		m.failed(a.group, true, s.now.Add(time.Second))
		return
	}
	m.sent(a.group, len(s.pending[a.group.name]) > 0, true, isolate)
}

func (s *sim) conclude(m *machine, g *group, fs *findings) {
	if len(fs.verified) > 0 {
		s.sight.lists()
	}
	for _, f := range fs.verified {
		s.done[f.item.Seq] = true
	}
	for _, f := range fs.dead {
		s.dead[f.item.Seq] = true
		if f.item.Losses != m.timing.MaxLosses || !f.single {
			s.t.Fatalf("turn %d is dead after %d losses, single %v", f.item.Seq, f.item.Losses, f.single)
		}
	}
	if len(fs.unknown)+len(fs.unverified) > 0 {
		s.t.Fatal("a memory that lists what it holds leaves nothing unknown")
	}
	for _, f := range fs.lost {
		it := f.item
		s.retried[it.Seq] = true
		it.Messages = it.unseen()
		list := append(s.pending[g.name], it)
		slices.SortFunc(list, func(a, b Item) int { return int(a.Seq - b.Seq) })
		s.pending[g.name] = list
		m.add(g.name, true)
	}
}

// run advances the time until all turns are done or dead and the machines are idle.
func (s *sim) run(turns int) {
	idle := func() bool {
		for _, m := range s.machines {
			if !m.idle() {
				return false
			}
		}
		return true
	}
	for steps := 0; len(s.done)+len(s.dead) < turns || !idle(); steps++ {
		if steps > 50_000 || s.now.Sub(clock) > 30*24*time.Hour {
			s.t.Fatalf("it does not end: %d done, %d dead of %d after %v", len(s.done), len(s.dead), turns, s.now.Sub(clock))
		}
		if s.crashed && s.now.Sub(s.since) > 20*time.Minute {
			s.restart()
		}
		wait := longest
		acted := false
		for _, w := range slices.Sorted(keys(s.machines)) {
			a, d := s.machines[w].next(s.now)
			if a.kind == nothing {
				wait = min(wait, d)
				continue
			}
			acted = true
			s.perform(s.machines[w], a)
		}
		if !acted {
			s.now = s.now.Add(max(wait, time.Millisecond))
		}
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// item returns a turn of two messages.
func item(number int64, group string, said time.Time) Item {
	it := Item{Entry: ledger.Entry{Group: group, Seq: number}}
	for _, role := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant} {
		it.Messages = append(it.Messages, graphiti.Row{Name: fmt.Sprint(number, ".", role), Role: role, Said: said})
	}
	return it
}

// unseen returns the messages that were not yet seen in the group.
func (it *Item) unseen() []graphiti.Row {
	return slices.DeleteFunc(slices.Clone(it.Messages), func(msg graphiti.Row) bool { return it.Have&ledger.SideOf(msg.Role) != 0 })
}

// TestEveryTurnOnceOrDead checks that, with any faults of calls, polls and workers, each
// turn arrives in its group once or is dead after three losses, the last of them alone.
// Turns that were sent only once keep their order. No barrier stays in a group of turns.
func TestEveryTurnOnceOrDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &sim{
			t: t, now: clock,
			apart:  rapid.Bool().Draw(t, "apart"),
			takes:  time.Duration(rapid.SampledFrom([]int{0, 10, 1000, 10_000}).Draw(t, "takes")) * time.Millisecond,
			behind: time.Duration(rapid.SampledFrom([]int{0, 0, 90, 900}).Draw(t, "behind")) * time.Second,
			poison: make(map[int64]bool), faults: rapid.IntRange(0, 30).Draw(t, "faults"),
			machines: make(map[string]*machine), pending: make(map[string][]Item), dead: make(map[int64]bool), done: make(map[int64]bool), retried: make(map[int64]bool),
			queues: make(map[string][]queued), kept: make(map[string][]queued),
		}
		turns, groups := rapid.IntRange(1, 40).Draw(t, "turns"), rapid.IntRange(1, 5).Draw(t, "groups")
		for i := range turns {
			number := int64(i + 1)
			group := fmt.Sprint("g", rapid.IntRange(1, groups).Draw(t, "group"))
			if rapid.IntRange(0, 15).Draw(t, "poison") == 15 {
				s.poison[number] = true
			}
			s.pending[group] = append(s.pending[group], item(number, group, clock))
		}
		for _, group := range slices.Sorted(keys(s.pending)) {
			if rapid.IntRange(0, 3).Draw(t, "in doubt") == 3 { // an earlier process sent the first turn
				it := s.pending[group][0]
				s.pending[group] = s.pending[group][1:]
				if rapid.Bool().Draw(t, "arrived") {
					for _, msg := range it.Messages {
						s.accept(queued{group: group, name: msg.Name, number: it.Seq, said: clock})
					}
				}
				m := s.machine(group)
				m.inFlight(m.find(group), []*flight{newFlight(it, clock)}, true, false, clock)
			}
			if len(s.pending[group]) > 0 {
				s.machine(group).add(group, true)
			}
		}
		s.run(turns)
		s.now = s.now.Add(time.Hour)
		s.work()
		s.check(turns)
	})
}

func (s *sim) check(turns int) {
	count := make(map[string]int)
	for group, list := range s.kept {
		last := int64(0)
		for _, m := range list {
			count[m.name]++
			if m.number == 0 && group != "probe" { // emptied with its next barrier
				s.t.Errorf("group %s: %s is left", group, m.name)
			}
			if m.number == 0 || s.retried[m.number] {
				continue
			}
			if m.number < last {
				s.t.Errorf("group %s: %d comes after %d", group, m.number, last)
			}
			last = m.number
		}
	}
	for number := int64(1); number <= int64(turns); number++ {
		for _, role := range []string{"user", "assistant"} {
			n := count[fmt.Sprint(number, ".", role)]
			switch {
			case s.done[number] && n != 1, n > 1:
				s.t.Errorf("turn %d's %s message is there %d times", number, role, n)
			case s.poison[number] && s.done[number]:
				s.t.Errorf("turn %d cannot be there", number)
			}
		}
	}
}
