package service

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

var errForgetting = errors.New("it is being forgotten")

// rows returns the rows of a part of a group.
func (sv *Service) rows(ctx context.Context, part ledger.Part, f graphiti.Filter) iter.Seq2[graphiti.Row, error] {
	if part.Session != "" {
		f.Session = graphiti.SessionHash(part.Session)
	}
	return func(yield func(graphiti.Row, error) bool) {
		for r, err := range sv.o.Memory.Rows(ctx, part.Group, f) {
			if !yield(r, withRemedy(err)) {
				return
			}
		}
	}
}

// headings calls f for each row of a group, unless the group is being forgotten. It reads no texts.
func (sv *Service) headings(ctx context.Context, group string, f func(*graphiti.Row)) error {
	if sv.o.State.Generations.Blocks(group) {
		return nil
	}
	var r graphiti.Row // one for all, because it escapes
	for one, err := range sv.rows(ctx, ledger.Part{Group: group}, graphiti.Filter{}) {
		if err != nil {
			return err
		}
		r = one
		f(&r)
	}
	return nil
}

// sessionIn returns the hash of a row's session. A session's own group contains only that
// session.
func sessionIn(o *ledger.Owned, r *graphiti.Row) string {
	if o.Scope == string(graphiti.ScopeSession) && o.Key != "" {
		return graphiti.SessionHash(o.Key)
	}
	return r.Session
}

// recordOf returns a row as answers have it.
func recordOf(r *graphiti.Row) Record {
	return Record{Name: r.Name, Where: "memory", Role: string(r.Role), Text: r.Text, Source: r.Source}
}

// momentOf returns a time in the format of lists. Its fixed length makes texts comparable.
func momentOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
