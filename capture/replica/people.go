package replica

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// each calls f for the waiting and the dead entries in the order of their numbers.
func (s *Queue) each(ctx context.Context, f func(e *streamEntry, m entryState, dead bool) error) error {
	marks, err := s.marks(ctx)
	if err != nil {
		return err
	}
	var dead []*streamEntry
	err = s.hash(ctx, "dead", func(field, value string) error {
		e := &streamEntry{}
		if err := json.Unmarshal([]byte(value), e); err != nil {
			return err
		}
		n, m, err := parseMark(field, e.Mark)
		e.Number, marks[n] = n, m
		dead = append(dead, e)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(dead, func(a, b *streamEntry) int { return int(a.Number - b.Number) })
	before := func(n int64) error {
		for len(dead) > 0 && dead[0].Number < n {
			e := dead[0]
			dead = dead[1:]
			if err := f(e, marks[e.Number], true); err != nil {
				return err
			}
		}
		return nil
	}
	err = s.read(ctx, "-", func(e *streamEntry) error {
		if err := before(e.Number); err != nil {
			return err
		}
		return f(e, marks[e.Number], false)
	})
	if err != nil {
		return err
	}
	return before(1 << 62)
}

func (s *Queue) Items(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error) {
	list = []ledger.Item{}
	err = s.each(ctx, func(e *streamEntry, m entryState, dead bool) error {
		condition := ledger.Waiting
		switch {
		case dead:
			condition = ledger.Dead
		case m.Sent > 0:
			condition = ledger.UnderWay
		}
		if o.Group != "" && o.Group != e.Group || o.Condition != "" && o.Condition != condition {
			return nil
		}
		if all++; all > o.Limit {
			return nil
		}
		l := ledger.Item{
			Number: e.Number, Condition: condition, Group: e.Group, Scope: string(e.Scope), Since: e.born(),
			Bytes: len(e.Body), Attempts: m.Attempts, Reason: m.Reason,
		}
		if o.Text {
			one, err := e.withMark(m)
			if err != nil {
				return err
			}
			l.User, l.Assistant = one.Turn.User, one.Turn.Assistant
		}
		list = append(list, l)
		return nil
	})
	return list, all, err
}

func (s *Queue) Retry(numbers []int64) (groups []string, back ledger.Size, err error) {
	err = paged(numbers, func(some []int64) error {
		reply, err := s.run(context.Background(), "retry turns", retryScript, false, nil, anyOf(some)...)
		if err == nil {
			back = back.Plus(ledger.Size{Turns: int(reply[0]), Bytes: int(reply[1])})
		}
		return err
	})
	return nil, back, err // who delivers finds them in the stream
}

func (s *Queue) DropDead(numbers []int64) (d ledger.Dropped, err error) {
	err = paged(numbers, func(some []int64) error {
		reply, err := s.run(context.Background(), "drop from spool", dropDeadScript, false, nil, anyOf(some)...)
		gone := goneOf(reply)
		d.Pending, d.Dead = d.Pending.Plus(gone.Pending), d.Dead.Plus(gone.Dead)
		return err
	})
	return d, err
}

// paged calls f for one page of the numbers at a time, the limit of a script. Without
// numbers it calls f once with nil, which selects all.
func paged(numbers []int64, f func([]int64) error) error {
	if len(numbers) == 0 {
		return f(nil)
	}
	for some := range slices.Chunk(numbers, page) {
		if err := f(some); err != nil {
			return err
		}
	}
	return nil
}

func anyOf(numbers []int64) []any {
	out := make([]any, len(numbers))
	for i, n := range numbers {
		out[i] = n
	}
	return out
}

// Forget implements ledger.Copies. The generation of the part is already shared.
func (s *Queue) Forget(part ledger.Part, generation int64, last bool) (d ledger.Dropped, err error) {
	ctx := context.Background()
	var waiting, dead []int64
	err = s.each(ctx, func(e *streamEntry, m entryState, isDead bool) error {
		if e.Group != part.Group {
			return nil
		}
		one, err := e.withMark(m)
		if err != nil || one.Turn.Generation >= generation || part.Session+part.Message != "" && !part.Means(&one.Turn) {
			return err
		}
		if isDead {
			dead = append(dead, e.Number)
		} else {
			waiting = append(waiting, e.Number)
		}
		return nil
	})
	if err != nil {
		return d, err
	}
	for len(waiting)+len(dead) > 0 {
		w, n := min(page, len(waiting)), min(page, len(dead))
		reply, err := s.run(ctx, "empty group", forgetScript, false, nil,
			append([]any{w}, append(anyOf(waiting[:w]), anyOf(dead[:n])...)...)...)
		if err != nil {
			return d, err
		}
		s.unqueue(part.Group, waiting[:w])
		waiting, dead = waiting[w:], dead[n:]
		gone := goneOf(reply)
		d.Pending, d.Dead = d.Pending.Plus(gone.Pending), d.Dead.Plus(gone.Dead)
	}
	owned, err := s.Owned(ctx, "")
	if err != nil || part.Message != "" {
		return d, err
	}
	return d, s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		if part.Session == "" {
			p.SRem(ctx, redis.Key("promoted"), part.Group)
		}
		for i := range owned {
			switch o := &owned[i]; {
			case !last || o.Group != part.Group:
			case part.Session == "":
				p.HDel(ctx, redis.Key("groups"), o.Group+"\n"+o.Owner)
			case part.Owner == "" || part.Owner == o.Owner:
				p.SRem(ctx, redis.Key("talk", graphiti.SessionHash(part.Session)), o.Group+"\n"+o.Owner)
			}
		}
		_, err := p.Exec(ctx)
		return err
	})
}
