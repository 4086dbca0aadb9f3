package inspector

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// today is the page of the week, with the problems that need attention.
type today struct {
	New   bool // no requests yet
	Needs []need
	Lines standings // lines that wait for the visitor
	Known bool      // the figures are valid
	From  string
	To    string

	Bill    string // memory's share of the bill
	Proof   string // state of proof mode
	Figures []figure
	Plots   []plot
	Silent  []silence
	Notes   []string

	State   *health.Status // for operators
	Started string
}

// need is a problem that needs attention.
type need struct{ What, Remedy, Href, Link string }

// figure is one number of the week.
type figure struct{ Name, Value, More string }

// silence is a reason, with its frequency.
type silence struct {
	explained
	Count int
	Share int // percent
}

func (v *visit) today() error {
	var t today
	if v.Caller.Operator {
		st, err := look(v, service.Status, func(*service.StatusRequest) {})
		if err != nil {
			return err
		}
		t.State, t.Needs, t.Started = &st, needs(&st), dated(&st.Started)
	}
	var w service.Week
	if v.p.o.Host.Now().Memory != nil {
		var err error
		w, err = look(v, service.Stats, func(in *service.Selector) { *in = v.whose().selector() })
		var invalid service.InvalidError
		switch {
		case errors.As(err, &invalid): // without a person
			t.Notes = append(t.Notes, "Stored messages are counted for one person at a time: choose a person on the page People.")
		case err != nil:
			_, f := v.judge(err)
			t.Needs = append(t.Needs, need{What: "The statistics of the week are not available. " + f.Says, Remedy: f.Remedy})
		default:
			t.Known = true
			t.count(&w)
		}
	}
	t.New = w.Week == (service.Figures{}) && (t.State == nil || len(t.State.Memory.Outcomes) == 0)
	if err := v.waiting(&t); err != nil {
		return err
	}
	return v.show("Today", t.main())
}

// waiting fills in the lines that wait for confirmation by the visitor, or by the person of
// the page. An operator who has chosen no person cannot confirm lines.
func (v *visit) waiting(t *today) (err error) {
	if v.p.o.Host.Memory == nil || v.Caller.Operator && v.multi() && v.whose() == (whose{}) {
		return nil
	}
	t.Lines, err = v.standings(nil)
	if n := t.Lines.AllWaiting; n > 0 {
		t.Needs = append(t.Needs, need{What: counted(n, "line") + " waiting for your confirmation.",
			Remedy: "Accept or reject them, here or with graphiti-proxy memory pending.", Href: "#waiting", Link: "See the waiting lines"})
	}
	return err
}

// count fills in the figures of the week.
func (t *today) count(w *service.Week) {
	f := &w.Week
	t.Notes = append(t.Notes, w.Notes...)
	if len(w.Days) > 0 {
		t.From, t.To = w.Days[0].Date, w.Days[len(w.Days)-1].Date
	}
	t.Figures = []figure{
		{"Conversations", grouped(f.Conversations), "with stored messages"},
		{"Turns kept", grouped(f.Turns), "on disk, verbatim"},
		{"Blocks shown", grouped(f.Blocks), share(f.Blocks, f.Blocks+f.Silent, "the decided turns")},
		{"Turns without a block", grouped(f.Silent), "no match, or not allowed"},
		{"Characters of memory", grouped(f.Chars), "in blocks; about " + counted(f.Tokens, "token")},
		{"Tokens from prompt caches", grouped(f.Cached), share(f.Cached, f.Input, "the input, reported by providers")},
		{"Requests waited", took(f.WaitedMs), waited(f)},
	}
	if t.Plots, t.Bill = weekPlots(w.Days), w.Bill; w.Proof != nil {
		t.Proof = "Proof mode: " + w.Proof.Says
	}
	silent := make(map[string]int64, len(w.Silent))
	for why, n := range w.Silent {
		silent[why] = int64(n)
	}
	t.Silent = shares(silent)
}

func share(n, all int, of string) string {
	return map[bool]string{true: fmt.Sprintf("%d %% of %s", min(100, 100*n/max(1, all)), of)}[all > 0]
}

func waited(f *service.Figures) string {
	if f.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("for memory; %s each, of %s", took(f.WaitedMs/float64(f.Requests)), counted(f.Requests, "request"))
}

// shares explains counts by their words, the most frequent first.
func shares(of map[string]int64) []silence {
	var all int64
	for _, n := range of {
		all += n
	}
	list := make([]silence, 0, len(of))
	for _, word := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) }) {
		says, ok := explain(word)
		if !ok {
			says.Says = sentence(outcomeOf(word))
		}
		list = append(list, silence{says, int(of[word]), int(100 * of[word] / max(all, 1))})
	}
	return list
}

// problemPages are the pages about problems, with the texts of the links.
var problemPages = map[health.Part][2]string{
	health.OfPeople: {"/people", "Confirm people"}, health.OfQuota: {"/people", "See the people"}, health.OfQueue: {"/delivery", "See dead letters"},
}

// needs lists the problems that need attention, except the lines that the page itself has.
func needs(st *health.Status) (list []need) {
	for _, n := range st.Needs() {
		if page := problemPages[n.Of]; n.Of != health.OfPending {
			list = append(list, need{sentence(n.What), sentence(n.Remedy), page[0], page[1]})
		}
	}
	return list
}
