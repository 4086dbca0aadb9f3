package capture

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// each calls f for what waits and for the dead, in the order of their numbers.
func (s *shared) each(ctx context.Context, f func(e *sharedEntry, m mark, dead bool) error) error {
	marks, err := s.marks(ctx)
	if err != nil {
		return err
	}
	var dead []*sharedEntry
	err = s.hash(ctx, "dead", func(field, value string) error {
		e := &sharedEntry{}
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
	slices.SortFunc(dead, func(a, b *sharedEntry) int { return int(a.Number - b.Number) })
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
	err = s.read(ctx, func(e *sharedEntry) error {
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

func (s *shared) letters(ctx context.Context, o ListOptions) (list []Letter, all int, err error) {
	list = []Letter{}
	err = s.each(ctx, func(e *sharedEntry, m mark, dead bool) error {
		condition := Waiting
		switch {
		case dead:
			condition = Dead
		case m.Sent > 0:
			condition = UnderWay
		}
		if o.Group != "" && o.Group != e.Group || o.Condition != "" && o.Condition != condition {
			return nil
		}
		if all++; all > o.Limit {
			return nil
		}
		l := Letter{
			Number: e.Number, Condition: condition, Group: e.Group, Scope: string(e.Scope), Since: e.born(),
			Bytes: len(e.Body), Attempts: m.Attempts, Reason: m.Reason,
		}
		if o.Text {
			one, err := e.entry(m)
			if err != nil {
				return err
			}
			l.User, l.Assistant = one.turn.User, one.turn.Assistant
		}
		list = append(list, l)
		return nil
	})
	return list, all, err
}

func (s *shared) retry(numbers []int64) (groups []string, back size, err error) {
	err = paged(numbers, func(some []int64) error {
		reply, err := s.run(context.Background(), "retry turns", retryScript, false, nil, anyOf(some)...)
		if err == nil {
			back = back.plus(size{int(reply[0]), int(reply[1])})
		}
		return err
	})
	return nil, back, err // who delivers finds them in the stream
}

func (s *shared) dropDead(numbers []int64) (d dropped, err error) {
	err = paged(numbers, func(some []int64) error {
		reply, err := s.run(context.Background(), "drop from spool", dropDeadScript, false, nil, anyOf(some)...)
		gone := goneOf(reply)
		d.pending, d.dead = d.pending.plus(gone.pending), d.dead.plus(gone.dead)
		return err
	})
	return d, err
}

// paged calls f for some of the numbers at a time, because a script takes so
// many at most; once with none where there are none, which means all.
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

func (s *shared) waiting(ctx context.Context, group string, f func(graphiti.Message) error, maxChars int) error {
	return s.each(ctx, func(e *sharedEntry, m mark, _ bool) error {
		if e.Group != group {
			return nil
		}
		one, err := e.entry(m)
		if err != nil {
			return err
		}
		return one.messages(f, maxChars)
	})
}

func (s *shared) forget(group string) (d dropped, err error) {
	ctx := context.Background()
	err = s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		return c.Set(ctx, redis.Key("forgot", group), time.Now().UnixMilli(), seenFor).Err()
	})
	if err != nil {
		return d, err
	}
	var waiting, dead []int64
	err = s.each(ctx, func(e *sharedEntry, _ mark, isDead bool) error {
		if e.Group == group && isDead {
			dead = append(dead, e.Number)
		} else if e.Group == group {
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
		s.unqueue(group, waiting[:w])
		waiting, dead = waiting[w:], dead[n:]
		gone := goneOf(reply)
		d.pending, d.dead = d.pending.plus(gone.pending), d.dead.plus(gone.dead)
	}
	owned, err := s.owned(ctx, "")
	if err != nil {
		return d, err
	}
	return d, s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		p.SRem(ctx, redis.Key("promoted"), group)
		for i := range owned {
			if owned[i].Group == group {
				p.HDel(ctx, redis.Key("groups"), group+"\n"+owned[i].Owner)
			}
		}
		_, err := p.Exec(ctx)
		return err
	})
}
