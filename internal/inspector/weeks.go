package inspector

import (
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// weeksPage is the page of the decisions, changed facts and work in one memory.
type weeksPage struct {
	*about
	Weeks []week
}

// week begins on a Monday of the visitor.
type week struct {
	Monday time.Time
	Hits   []hitView
}

// A page has mostWeeks, and mostOfWeek results of each.
const mostWeeks, mostOfWeek = 12, 15

func (v *visit) weeks() error {
	a, err := v.meant("weeks")
	if err != nil {
		return err
	}
	p := weeksPage{about: a}
	s := &search{whose: a.whose, Group: a.Group, Place: a.Group}
	for _, s.Kind = range []string{card.KindRule, service.KindFact, "work"} {
		got, err := v.results(s, rowsAtMost)
		if err != nil {
			return err
		}
		for i := range got.Facts {
			f := &got.Facts[i]
			if f.Origin == service.KindSaid && card.Decides(f.Text) {
				f.Kind = "decision"
			}
			if f.Kind != service.KindFact || len(f.Before) > 0 {
				p.add(v.hit(f, a.Weeks()), v.zone())
			}
		}
	}
	slices.SortFunc(p.Weeks, func(a, b week) int { return b.Monday.Compare(a.Monday) })
	p.Weeks = p.Weeks[:min(mostWeeks, len(p.Weeks))]
	return v.show(a.title(), p.main())
}

// add adds a result to its week in a zone.
func (p *weeksPage) add(h hitView, zone *time.Location) {
	at, _ := time.Parse(time.RFC3339, h.Time) // a search has written it
	y, m, d := at.In(zone).Date()
	monday := time.Date(y, m, d-(int(at.In(zone).Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	i := slices.IndexFunc(p.Weeks, func(w week) bool { return w.Monday.Equal(monday) })
	if i < 0 {
		i, p.Weeks = len(p.Weeks), append(p.Weeks, week{Monday: monday})
	}
	if w := &p.Weeks[i]; len(w.Hits) < mostOfWeek {
		w.Hits = append(w.Hits, h)
	}
}
