package replica

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// handed is an entry that was handed over, and when among others.
type handed struct {
	group string
	sent  int64
	entry ledger.Entry
}

// takeOver reads, when this process begins to deliver, what another has read:
// what waits goes to its line, what was handed over is in doubt, and returned
// in the order in which it was.
func (s *Queue) takeOver(ctx context.Context) (doubts []handed, err error) {
	marks, err := s.marks(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lines = make(map[string]*line)
	for _, m := range marks {
		s.sent = max(s.sent, m.Sent)
	}
	s.mu.Unlock()
	if err := s.makeGroup(ctx); err != nil {
		return nil, err
	}
	for from := "0-0"; ; {
		var list []goredis.XMessage
		err := s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
			list, from, err = c.XAutoClaim(ctx, &goredis.XAutoClaimArgs{
				Stream: redis.Key("spool"), Group: consumers, Consumer: s.token, Start: from, Count: Page,
			}).Result()
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("take over the spool: %w", err)
		}
		for i := range list {
			e, err := parse(&list[i])
			if err != nil {
				continue // it is not ours
			}
			if m := marks[e.Number]; m.Sent > 0 {
				one, err := e.withMark(m)
				if err != nil {
					continue
				}
				doubts = append(doubts, handed{e.Group, m.Sent, one})
				continue
			}
			s.queue(e.Group, e.Number, e.Later == "1")
		}
		switch {
		case from != "0-0":
		case len(list) == Page: // not all servers say that there is more
			last, err := parse(&list[Page-1])
			if err != nil {
				return nil, err
			}
			from = idOf(last.Number + 1)
		default:
			slices.SortStableFunc(doubts, func(a, b handed) int { return cmp.Compare(a.sent, b.sent) })
			return doubts, nil
		}
	}
}

func (s *Queue) makeGroup(ctx context.Context) error {
	return s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		// A server that is full would refuse to make what is there.
		groups, err := c.XInfoGroups(ctx, redis.Key("spool")).Result()
		if err == nil && slices.ContainsFunc(groups, func(g goredis.XInfoGroup) bool { return g.Name == consumers }) {
			return nil
		}
		err = c.XGroupCreateMkStream(ctx, redis.Key("spool"), consumers, "0").Err()
		if err != nil && strings.HasPrefix(err.Error(), "BUSYGROUP") {
			return nil
		}
		return err
	})
}

// Follow waits a while for entries that nobody has read, puts them in their
// lines and calls found for each.
func (s *Queue) Follow(ctx context.Context, wait time.Duration, found func(group string, fresh bool)) error {
	var streams []goredis.XStream
	err := s.db.EaseWait(ctx, wait, func(ctx context.Context, c redis.Cmdable) (err error) {
		streams, err = c.XReadGroup(ctx, &goredis.XReadGroupArgs{
			Group: consumers, Consumer: s.token, Streams: []string{redis.Key("spool"), ">"}, Count: Page, Block: wait,
		}).Result()
		if errors.Is(err, redis.Nil) {
			return nil // nothing came
		}
		return err
	})
	if err != nil {
		if strings.HasPrefix(err.Error(), "NOGROUP") {
			return s.makeGroup(ctx) // somebody has emptied the database
		}
		return err
	}
	for _, stream := range streams {
		for i := range stream.Messages {
			e, err := parse(&stream.Messages[i])
			if err != nil {
				continue // it is not ours
			}
			s.queue(e.Group, e.Number, e.Later == "1")
			found(e.Group, e.Later != "1")
		}
	}
	return nil
}

// Adopt puts into their lines what is down as read by others: who leads now has
// taken over all that was there, so that it came since. It calls found for
// each, and forgets those who read it.
func (s *Queue) Adopt(ctx context.Context, found func(group string, fresh bool)) error {
	stream := redis.Key("spool")
	return s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		others, err := c.XInfoConsumers(ctx, stream, consumers).Result()
		if err != nil {
			return err
		}
		for _, o := range others {
			if o.Name == s.token || o.Idle < LeaseFor {
				continue
			}
			if o.Pending > 0 {
				if err := s.claim(ctx, c, o.Name, found); err != nil {
					return err
				}
			}
			if o.Pending <= Page {
				if err := c.XGroupDelConsumer(ctx, stream, consumers, o.Name).Err(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// claim takes entries over from another replica.
func (s *Queue) claim(ctx context.Context, c redis.Cmdable, from string, found func(group string, fresh bool)) error {
	stream := redis.Key("spool")
	pending, err := c.XPendingExt(ctx, &goredis.XPendingExtArgs{Stream: stream, Group: consumers, Start: "-", End: "+", Count: Page, Consumer: from}).Result()
	if err != nil || len(pending) == 0 {
		return err
	}
	ids := make([]string, len(pending))
	for i := range pending {
		ids[i] = pending[i].ID
	}
	list, err := c.XClaim(ctx, &goredis.XClaimArgs{Stream: stream, Group: consumers, Consumer: s.token, Messages: ids}).Result()
	if err != nil {
		return err
	}
	for i := range list {
		if e, err := parse(&list[i]); err == nil {
			s.queue(e.Group, e.Number, e.Later == "1")
			found(e.Group, e.Later != "1")
		}
	}
	return nil
}

// queue puts an entry into its line.
func (s *Queue) queue(group string, n int64, later bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[group]
	if l == nil {
		l = &line{}
		s.lines[group] = l
	}
	list := &l.fresh
	if later {
		list = &l.older
	}
	if i, had := slices.BinarySearch(*list, n); !had {
		*list = slices.Insert(*list, i, n)
	}
}

// unqueue takes entries out of their line.
func (s *Queue) unqueue(group string, numbers []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[group]
	if l == nil {
		return
	}
	gone := func(n int64) bool { return slices.Contains(numbers, n) }
	if l.fresh, l.older = slices.DeleteFunc(l.fresh, gone), slices.DeleteFunc(l.older, gone); len(l.fresh)+len(l.older) == 0 {
		delete(s.lines, group)
	}
}

// first returns the numbers of the first n entries of a line.
func (s *Queue) first(group string, n int) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[group]
	if l == nil {
		return nil
	}
	out := slices.Clone(l.fresh[:min(n, len(l.fresh))])
	return append(out, l.older[:min(n-len(out), len(l.older))]...)
}

func (s *Queue) Groups(found func(group string, fresh bool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for group, l := range s.lines {
		found(group, len(l.fresh) > 0)
	}
	return nil
}

// InDoubt takes over first: it is what delivery begins with.
func (s *Queue) InDoubt(found func(group string, e ledger.Entry)) error {
	doubts, err := s.takeOver(context.Background())
	if err != nil {
		return err
	}
	for _, d := range doubts {
		found(d.group, d.entry)
	}
	return nil
}

func (s *Queue) Next(ctx context.Context, group string, n int) (out []ledger.Entry, err error) {
	for len(out) == 0 && err == nil {
		numbers := s.first(group, n)
		if len(numbers) == 0 {
			return nil, nil
		}
		var gone []int64
		out, gone, err = s.entries(ctx, numbers)
		s.unqueue(group, gone)
	}
	return out, err
}

// entries reads those of the numbers; gone are not there any more.
func (s *Queue) entries(ctx context.Context, numbers []int64) (out []ledger.Entry, gone []int64, err error) {
	marks, err := s.marksOf(ctx, numbers)
	if err != nil {
		return nil, nil, err
	}
	err = s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		out, gone = nil, nil
		p := c.Pipeline()
		lists := make([]*goredis.XMessageSliceCmd, len(numbers))
		for i, n := range numbers {
			lists[i] = p.XRange(ctx, redis.Key("spool"), idOf(n), idOf(n))
		}
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
		for i, l := range lists {
			if len(l.Val()) == 0 {
				gone = append(gone, numbers[i])
				continue
			}
			e, err := parse(&l.Val()[0])
			if err != nil {
				return err
			}
			one, err := e.withMark(marks[i])
			if err != nil { // nobody can read it; it does not hold up the others
				gone = append(gone, numbers[i])
				continue
			}
			out = append(out, one)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read spool: %w", err)
	}
	return out, gone, nil
}

func idOf(n int64) string { return strconv.FormatInt(n, 10) + "-0" }

func numbersOf(entries []ledger.Entry) []int64 {
	out := make([]int64, len(entries))
	for i := range entries {
		out[i] = entries[i].Seq
	}
	return out
}

// note writes down what became of entries.
func (s *Queue) note(what string, entries []ledger.Entry, of func(m *mark, e *ledger.Entry)) error {
	if len(entries) == 0 {
		return nil
	}
	before, err := s.marksOf(context.Background(), numbersOf(entries))
	if err != nil {
		return err
	}
	var args []any
	for i := range entries {
		of(&before[i], &entries[i])
		value, err := json.Marshal(before[i])
		if err != nil {
			return err
		}
		args = append(args, entries[i].Seq, string(value))
	}
	_, err = s.run(context.Background(), what, markScript, true, nil, args...)
	return err
}

// marksOf are those of some entries.
func (s *Queue) marksOf(ctx context.Context, numbers []int64) ([]mark, error) {
	fields := make([]string, len(numbers))
	for i, n := range numbers {
		fields[i] = strconv.FormatInt(n, 10)
	}
	out := make([]mark, len(numbers))
	err := s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		values, err := c.HMGet(ctx, redis.Key("marks"), fields...).Result()
		if err != nil {
			return err
		}
		for i := range values {
			value, _ := values[i].(string)
			if _, out[i], err = parseMark(fields[i], value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	return out, nil
}

func (s *Queue) MarkSent(group string, entries []ledger.Entry) error {
	s.mu.Lock()
	sent := s.sent
	s.sent += int64(len(entries))
	s.mu.Unlock()
	err := s.note("note hand-over", entries, func(m *mark, e *ledger.Entry) {
		sent++
		m.Sent, m.Have, m.Losses = sent, e.Have, e.Losses
	})
	if err == nil {
		s.unqueue(group, numbersOf(entries))
	}
	return err
}

func (s *Queue) Requeue(group string, entries []ledger.Entry, reason string) error {
	err := s.note("note failure", entries, func(m *mark, e *ledger.Entry) {
		m.Sent, m.Attempts, m.Reason, m.Have, m.Losses = 0, m.Attempts+1, reason, e.Have, e.Losses
	})
	if err == nil {
		for i := range entries {
			s.queue(group, entries[i].Seq, entries[i].Later)
		}
	}
	return err
}

func (s *Queue) MarkDelivered(group string, entries []ledger.Entry, verified bool, _ time.Time) (gone ledger.Size, err error) {
	if len(entries) == 0 {
		return ledger.Size{}, nil
	}
	args := []any{digit(verified)}
	for i := range entries {
		args = append(args, entries[i].Seq)
	}
	reply, err := s.run(context.Background(), "note delivery", doneScript, true, nil, args...)
	if err != nil {
		return ledger.Size{}, err
	}
	s.unqueue(group, numbersOf(entries))
	return ledger.Size{Turns: int(reply[0]), Bytes: int(reply[1])}, nil
}

func (s *Queue) MarkDead(group string, e *ledger.Entry, reason string) (ledger.Size, error) {
	before, err := s.marksOf(context.Background(), []int64{e.Seq})
	if err != nil {
		return ledger.Size{}, err
	}
	value, err := json.Marshal(mark{Attempts: before[0].Attempts + 1, Have: e.Have, Losses: e.Losses, Reason: reason})
	if err != nil {
		return ledger.Size{}, err
	}
	reply, err := s.run(context.Background(), "note refusal", buryScript, true, nil, e.Seq, string(value))
	if err != nil {
		return ledger.Size{}, err
	}
	s.unqueue(group, []int64{e.Seq})
	return ledger.Size{Turns: int(reply[0]), Bytes: int(reply[1])}, nil
}
