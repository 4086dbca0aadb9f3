package service

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Export calls f for everything that is kept of one group, or of a session in
// it.
func (sv *Service) Export(ctx context.Context, s Selector, f func(Record) error) error {
	if err := s.checkOne(); err != nil {
		return err
	}
	part, own, err := sv.partOf(ctx, s)
	if err != nil {
		return err
	}
	if own {
		part = ledger.Part{Group: s.Group}
	}
	return sv.export(ctx, part, f)
}

func (sv *Service) export(ctx context.Context, part ledger.Part, f func(Record) error) error {
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return err
	}
	whose := sv.addressed(known, part.Group)
	message := func(where, name, role, speaker, text, source string, at time.Time) error {
		r := whose
		r.Where, r.Name, r.Role, r.Speaker, r.Text, r.Source = where, name, role, speaker, text, source
		r.Time = at.UTC().Format(time.RFC3339Nano)
		return f(r)
	}
	listed, names := false, make(map[string]bool)
	err = sv.o.Memory.Export(ctx, part.Group, func(e graphiti.Episode) error {
		listed = true
		if !part.Said(&e) {
			return nil
		}
		for _, said := range e.Sides() {
			names[said.Name] = true
			if err := message("memory", said.Name, string(said.Role), said.Speaker, said.Text, e.SourceDescription, e.ValidAt); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = sv.exportFacts(ctx, part.Group, names, message)
	}
	if err != nil {
		return withRemedy(err)
	}
	err = sv.o.Pipeline.Waiting(ctx, part, func(g graphiti.Message) error {
		return message("queue", g.Name, string(g.RoleType), g.Role, g.Content, g.SourceDescription, g.Timestamp)
	})
	if err != nil {
		return err
	}
	err = sv.o.State.Snapshots.Each(ctx, func(session string, body []byte) error {
		if r := notesOf(whose, session, body); r.Text != "" { // else it says which session was the last one
			return f(r)
		}
		return nil
	}, part.Scope(), part.Group)
	if err != nil || listed {
		return err
	}
	return sv.emptyOrUnlisted(ctx, part.Group)
}

// emptyOrUnlisted is an UnlistedError where a group holds something though
// nothing of it is listed.
func (sv *Service) emptyOrUnlisted(ctx context.Context, group string) error {
	switch there, err := sv.o.Memory.Unlisted(ctx, group); {
	case err != nil:
		return withRemedy(err)
	case there:
		return withRemedy(&graphiti.UnlistedError{Group: group})
	}
	return nil
}
