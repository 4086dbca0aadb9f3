package service

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
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
	return sv.exportOf(ctx, portion{part, nil, func(l *card.Line) bool {
		return part.Session == "" || l.Session == graphiti.SessionHash(part.Session)
	}}, f)
}

// portion selects records of a part of a group.
type portion struct {
	ledger.Part
	names []string // only messages with these names, the facts from any of them, and no notes; nil for all
	lines func(*card.Line) bool
}

func (sv *Service) exportOf(ctx context.Context, part portion, f func(Record) error) error {
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return err
	}
	whose := sv.addressed(known, part.Group)
	if err := sv.exportRules(ctx, part, whose, f); err != nil {
		return err
	}
	ended, err := sv.o.State.Ended.In(ctx, part.Group)
	if err != nil {
		return err
	}
	names := make(map[string]bool)
	for r, err := range sv.rows(ctx, part.Part, graphiti.Filter{Names: part.names, Text: true}) {
		if err != nil {
			return err
		}
		of := recordOf(&r)
		of.Group, of.Scope, of.User, of.Workspace, of.Session = whose.Group, whose.Scope, whose.User, whose.Workspace, whose.Session
		of.Speaker, of.Time, of.Ended = r.Speaker, r.Said.UTC().Format(time.RFC3339Nano), ended[r.Name]
		if _, ok := graphiti.ParseCurated(r.Text); ok {
			l := of.Line()
			of.Signed = sv.sign(&l)
		}
		if err := f(of); err != nil {
			return err
		}
		names[r.Name] = true
	}
	err = sv.exportFacts(ctx, part.Group, whose, f, func(d *graphiti.Distilled) bool {
		if part.names != nil {
			return slices.ContainsFunc(d.Sources, func(m string) bool { return names[m] })
		}
		return !slices.ContainsFunc(d.Sources, func(m string) bool { return !names[m] })
	})
	if err != nil || part.names != nil {
		return err
	}
	return sv.o.State.Snapshots.Each(ctx, func(session string, body []byte) error {
		if r := notesOf(whose, session, body); r.Text != "" { // else the body only names the last session
			return f(r)
		}
		return nil
	}, part.Scope(), part.Group)
}

// exportRules exports the lines of a group's card in each state, the oldest first. They come before
// the messages: a line of a promoted message keeps its state.
func (sv *Service) exportRules(ctx context.Context, part portion, whose Record, f func(Record) error) error {
	lines, err := sv.cards().Stored(ctx, []graphiti.Target{{Group: part.Group}})
	if err != nil {
		return err
	}
	for _, l := range slices.Backward(lines) {
		if !part.lines(&l) {
			continue
		}
		r := whose
		r.Where, r.Text, r.Time = WhereRule, l.Text, time.Unix(0, l.Changed).UTC().Format(time.RFC3339Nano)
		l.ID, l.Changed = "", 0 // the ID depends on the group, which has another name elsewhere
		if l.Owner == sv.o.Owner {
			l.Owner = ""
		}
		source, _ := json.Marshal(l) // strings, numbers and booleans only
		r.Source = string(source)
		line := r.Line()
		r.Signed = sv.sign(&line)
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}
