package capture

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// read returns the messages of a turn.
func (p *Pipeline) read(ctx context.Context, group, turn string) (list []graphiti.Row, err error) {
	names := []string{turn}
	for _, role := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant, graphiti.RoleSystem} {
		names = append(names, graphiti.EpisodeName(turn, role))
	}
	for r, err := range p.Rows(ctx, group, graphiti.Filter{Names: names, Text: true}) {
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// Turns returns the waiting and dead turns of the queue to Graphiti, oldest first, and the number of
// all matching turns. Without Graphiti there are none.
func (p *Pipeline) Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error) {
	if p.out == nil {
		return []ledger.Item{}, 0, nil
	}
	list, all, err = p.Items(ctx, o)
	for i := range list {
		if err != nil || !o.Text {
			break
		}
		var said []graphiti.Row
		said, err = p.read(ctx, list[i].Group, list[i].Turn)
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

// Retry delivers dead turns again: those with the numbers, or all if numbers is empty. It returns
// their number.
func (p *Pipeline) Retry(numbers []int64) (int, error) {
	n, err := p.Ledger.Retry(numbers)
	if p.out != nil {
		p.out.loop.Test()
	}
	return n, err
}

// Send copies the turns since a time that Graphiti never got, after all others. It returns their
// number.
func (p *Pipeline) Send(since time.Time) (int, error) {
	if p.out == nil {
		return 0, nil
	}
	defer p.out.loop.Wake()
	return p.Ledger.Send(since)
}

// Import stores, in the background, the messages of an owner's groups that only Graphiti has, with
// their facts. It does nothing for groups that were imported recently.
func (p *Pipeline) Import(owner ledger.Turn) {
	if p.out != nil {
		p.out.pulls.importLater(owner)
	}
}

// lookEvery is the interval at which a forget checks the deletion in Graphiti.
const lookEvery = 20 * time.Millisecond

// Withdrawn waits until the forgotten parts of a group are deleted in Graphiti, or until ctx ends, or
// unless patient until an attempt fails. It returns the number of messages, sessions or groups
// that may be left, and the error of the last attempt.
func (p *Pipeline) Withdrawn(ctx context.Context, group string, patient bool) (left int, err error) {
	if p.out == nil {
		return 0, nil
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		rows, err := p.Ledger.Withdrawn(context.WithoutCancel(ctx), group)
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		failed := p.out.loop.Erased(group, rows[len(rows)-1].ID)
		switch {
		case errors.Is(failed, deliver.ErrQuiet): // only a later turn proves a loss
			return len(rows), nil
		case failed != nil && !patient:
			return len(rows), failed
		}
		select {
		case <-ctx.Done():
			return len(rows), failed
		case <-tick.C:
		}
	}
}
