package service

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Export calls f for everything that is kept of one group, or of a session in
// it.
func (sv *Service) Export(ctx context.Context, s Selector, f func(Record) error) error {
	if err := s.checkOne(); err != nil {
		return err
	}
	if s.Session == "" {
		return sv.exportGroup(ctx, s.Group, f)
	}
	return sv.exportSession(ctx, s, f)
}

// exportGroup calls f for everything that is kept of a group.
func (sv *Service) exportGroup(ctx context.Context, group string, f func(Record) error) error {
	return sv.export(ctx, ledger.Part{Group: group}, f)
}

// exportSession calls f for what is kept of a session in one of its groups.
func (sv *Service) exportSession(ctx context.Context, s Selector, f func(Record) error) error {
	part, own, err := sv.partOf(ctx, s)
	if err != nil {
		return err
	}
	if own {
		return sv.exportGroup(ctx, s.Group, f)
	}
	return sv.export(ctx, part, f)
}

func (sv *Service) export(ctx context.Context, part ledger.Part, f func(Record) error) error {
	err := sv.o.Memory.Export(ctx, part.Group, func(e graphiti.Episode) error {
		if !part.Said(&e) {
			return nil
		}
		role, text := spoken(e.Content)
		return f(Record{Group: part.Group, Name: e.Name, Where: "memory", Role: role, Text: text, Time: e.ValidAt.UTC().Format(time.RFC3339Nano), Source: e.SourceDescription})
	})
	if err != nil {
		return err
	}
	err = sv.o.Pipeline.Waiting(ctx, part, func(g graphiti.Message) error {
		return f(Record{Group: part.Group, Name: g.Name, Where: "queue", Role: string(g.RoleType), Text: g.Content, Time: g.Timestamp.UTC().Format(time.RFC3339Nano), Source: g.SourceDescription})
	})
	if err != nil {
		return err
	}
	return sv.o.State.Snapshots.Each(ctx, func(body []byte) error {
		for _, line := range inject.SnapshotLines(body) {
			if err := f(Record{Group: part.Group, Where: "session", Text: line}); err != nil {
				return err
			}
		}
		return nil
	}, part.Scope(), part.Group)
}
