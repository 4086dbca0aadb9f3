package inspector

import (
	"cmp"
	"net/url"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// linesAtOnce is the number of lines of each kind on a page.
const linesAtOnce = 30

// standings are the standing lines of a person, or of one memory.
type standings struct {
	Waiting, Card, Others []standing
	AllWaiting            int // shown or not
}

// standing is a line with its possible changes.
type standing struct {
	service.Standing
	lineForm
	Editable string
	Projects []choice // to limit a line of all projects to one
}

// lineForm has the fields of a form about lines.
type lineForm struct {
	whose
	In, Back string // In is the group of the page
}

// State returns the state in words.
func (s *standing) State() string {
	return cmp.Or(lineStates[s.Standing.State], oneLine(string(s.Standing.State)))
}

// Waits reports whether the line waits for confirmation.
func (s *standing) Waits() bool { return s.Standing.State == card.Pending }

// Off reports whether the line has no effect and can be accepted.
func (s *standing) Off() bool {
	return s.Standing.State == card.Ended || s.Standing.State == card.Rejected
}

// standings returns the lines of one memory. If of is nil, it returns the lines that wait
// for confirmation.
func (v *visit) standings(of *about) (list standings, err error) {
	group, back := "", v.whose().at("/")
	if of != nil {
		group, back = of.Group, of.Timeline()
	}
	var projects []choice
	if of != nil && of.Scope == "user" {
		projects = of.Projects
	}
	got, err := look(v, service.Pending, func(in *service.PendingRequest) { in.Selector, in.All = v.ofWhom(group), of != nil })
	if err != nil {
		return list, err
	}
	for _, l := range got.Lines {
		if of != nil && l.Group != group {
			continue
		}
		to := &list.Others
		switch {
		case l.State == card.Pending:
			to = &list.Waiting
			list.AllWaiting++
		case l.OnCard:
			to = &list.Card
		}
		if len(*to) < linesAtOnce {
			*to = append(*to, standing{l, lineForm{v.whose(), group, back}, editable(l.Text), projects})
		}
	}
	return list, nil
}

// settle applies the decision of a form to its lines.
func (v *visit) settle() error {
	what := v.r.FormValue("do")
	ids := v.r.PostForm["id"]
	notice, known := map[string]string{"accept": "line-accepted", "reject": "line-rejected", "end": "line-ended", "edit": "line-edited"}[what]
	if !known || len(ids) == 0 {
		return errNowhere
	}
	if what == "edit" && v.r.FormValue("to") != "" {
		notice = "line-limited"
	}
	return act(v, service.Settle, v.back(v.whose().at("/")), notice, func(in *service.SettleRequest) {
		in.Selector = v.ofWhom(v.r.FormValue("group"))
		*map[string]*[]string{"accept": &in.Accept, "edit": &in.Accept, "reject": &in.Reject, "end": &in.End}[what] = ids
		if what == "edit" {
			in.Text, in.To = v.r.FormValue("text"), v.r.FormValue("to")
		}
	})
}

// undo is the form that undoes the changes of a notice.
type undo struct {
	whose
	IDs  []string
	Back string
}

// undo returns the form if the page shows a notice of changes that can be undone, or nil.
func (v *visit) undo(notice string) *undo {
	q := v.r.URL.Query()
	ids := q["undo"]
	if len(ids) == 0 || notices[notice] == "" {
		return nil
	}
	q.Del("undo")
	q.Del("done")
	back := url.URL{Path: v.r.URL.Path, RawQuery: q.Encode()}
	return &undo{v.whose(), ids, back.String()}
}

// lineStates are the states of lines in words.
var lineStates = map[card.LineState]string{
	card.Pending: "waits for your confirmation", card.Local: "only in its place", card.Confirmed: "accepted", card.Rejected: "rejected",
	card.Ended: "removed or ended", card.Superseded: "superseded by a newer line",
}
