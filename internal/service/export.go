package service

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Export calls f for every record of one group, or of a session in it.
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
	names := make(map[string]bool)
	for r, err := range sv.rows(ctx, part, graphiti.Filter{Text: true}) {
		if err != nil {
			return err
		}
		of := recordOf(&r)
		of.Group, of.Scope, of.User, of.Workspace, of.Session = whose.Group, whose.Scope, whose.User, whose.Workspace, whose.Session
		of.Speaker, of.Time = r.Speaker, r.Said.UTC().Format(time.RFC3339Nano)
		if _, ok := graphiti.ParseCurated(r.Text); ok {
			l := of.line()
			of.Signed = sv.sign(&l)
		}
		if err := f(of); err != nil {
			return err
		}
		names[r.Name] = true
	}
	if err := sv.exportFacts(ctx, part.Group, whose, names, f); err != nil {
		return err
	}
	return sv.o.State.Snapshots.Each(ctx, func(session string, body []byte) error {
		if r := notesOf(whose, session, body); r.Text != "" { // else the body only names the last session
			return f(r)
		}
		return nil
	}, part.Scope(), part.Group)
}
