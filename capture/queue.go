package capture

import (
	"context"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// queue provides the copies of a store with their texts.
type queue struct {
	ledger.Copies // of record; calls through an embedded pointer are slow under the race detector
	record        *ledger.Ledger
	facts         FactStore // nil without facts
	*settings
}

var _ deliver.Ledger = queue{}

// read returns the messages of a turn.
func (q queue) read(ctx context.Context, group, turn string) (list []graphiti.Row, err error) {
	names := []string{turn}
	for _, role := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant, graphiti.RoleSystem} {
		names = append(names, graphiti.EpisodeName(turn, role))
	}
	for r, err := range q.record.Rows(ctx, group, graphiti.Filter{Names: names, Text: true}) {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// Messages returns the messages of a copy. Facts that were distilled from a turn stand for it.
func (q queue) Messages(ctx context.Context, c *ledger.Copy) ([]graphiti.Row, error) {
	list, err := q.read(ctx, c.Group, c.Turn)
	if err != nil || len(list) == 0 || q.facts == nil {
		return episodesOf(list, q.opts().Episodes), err
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	facts, err := q.facts.FactsIn(ctx, c.Group, names)
	if err != nil || len(facts) == 0 {
		return episodesOf(list, q.opts().Episodes), err
	}
	list[0].Text = strings.Join(facts, "\n")
	return list[:1], nil
}

func (q queue) Has(ctx context.Context, group string, names []string) (bool, error) {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if len(names) == 0 {
		return false, nil
	}
	for _, err := range q.record.Rows(ctx, group, graphiti.Filter{Names: names}) {
		return err == nil, err
	}
	return false, nil
}

// Turns implements Queue.
func (q queue) Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error) {
	list, all, err = q.record.Items(ctx, o)
	for i := range list {
		if err != nil || !o.Text {
			break
		}
		var said []graphiti.Row
		said, err = q.read(ctx, list[i].Group, list[i].Turn)
		for _, r := range said {
			if r.Role == graphiti.RoleAssistant {
				list[i].Assistant = r.Text
			} else {
				list[i].User = r.Text
			}
		}
	}
	return list, all, err
}

// status returns the counts of the store.
func (q queue) status(ctx context.Context) (s QueueStatus, err error) {
	n, err := q.record.Counts(ctx)
	if err != nil {
		return s, err
	}
	t, err := q.record.Totals()
	s.Pending, s.Dead, s.Oldest, s.Withdrawn = n.Pending, n.Dead, at(n.Oldest), n.Withdrawn
	s.Delivered, s.Verified, s.Dropped = t.Delivered, t.Verified, t.Dropped
	return s, err
}
