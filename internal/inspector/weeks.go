package inspector

import (
	"cmp"
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
	Monday, All string // All is the search for the week
	Hits        []hitView
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
			if f := &got.Facts[i]; s.Kind != service.KindFact || len(f.Before) > 0 {
				p.add(v.hit(f, a.Weeks()), v.zone())
			}
		}
	}
	slices.SortFunc(p.Weeks, func(a, b week) int { return cmp.Compare(b.Monday, a.Monday) })
	p.Weeks = p.Weeks[:min(mostWeeks, len(p.Weeks))]
	return v.show(upper(a.Name), p.main())
}

// add adds a result to its week in a zone.
func (p *weeksPage) add(h hitView, zone *time.Location) {
	at, _ := time.Parse(time.RFC3339, h.Time) // a search has written it
	at = at.In(zone)
	at = at.AddDate(0, 0, -(int(at.Weekday())+6)%7)
	monday, sunday := at.Format(time.DateOnly), at.AddDate(0, 0, 6).Format(time.DateOnly)
	i := slices.IndexFunc(p.Weeks, func(w week) bool { return w.Monday == monday })
	if i < 0 {
		i, p.Weeks = len(p.Weeks), append(p.Weeks, week{Monday: monday, All: p.at("/search", "group", p.Group, "project", p.Group, "since", monday, "until", sunday)})
	}
	if w := &p.Weeks[i]; len(w.Hits) < mostOfWeek {
		w.Hits = append(w.Hits, h)
	}
}
