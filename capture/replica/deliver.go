package replica

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// inDoubt is a sent entry with its position in the order of sending.
type inDoubt struct {
	ledger.Entry
	sent int64
}

// takeOver reads the stream at the start of delivery. It queues the waiting entries in
// their lines and returns the sent ones, which are in doubt, in the order of sending.
func (s *Queue) takeOver(ctx context.Context) (doubts []inDoubt, err error) {
	marks, err := s.marks(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lines, s.newest = make(map[string]*line), 0
	for _, m := range marks {
		s.sent = max(s.sent, m.Sent)
	}
	s.mu.Unlock()
	err = s.read(ctx, "-", func(e *streamEntry) error {
		m := marks[e.Number]
		if m.Sent == 0 {
			s.queue(e)
			return nil
		}
		s.mu.Lock()
		s.newest = e.Number
		s.mu.Unlock()
		if one, err := e.withMark(m); err == nil { // skip unreadable entries
			doubts = append(doubts, inDoubt{one, m.Sent})
		}
		return nil
	})
	slices.SortStableFunc(doubts, func(a, b inDoubt) int { return cmp.Compare(a.sent, b.sent) })
	return doubts, err
}

// Follow waits for new entries, adds each to the line of its group, and calls found for it.
func (s *Queue) Follow(ctx context.Context, wait time.Duration, found func(group string, fresh bool)) error {
	s.mu.Lock()
	newest := s.newest
	s.mu.Unlock()
	var list []goredis.XMessage
	err := s.db.EaseWait(ctx, wait, func(ctx context.Context, c redis.Cmdable) error {
		streams, err := c.XRead(ctx, &goredis.XReadArgs{Streams: []string{redis.Key("spool"), idOf(newest)}, Count: page, Block: wait}).Result()
		if errors.Is(err, redis.Nil) {
			return nil // nothing came
		}
		if err == nil {
			list = streams[0].Messages
		}
		return err
	})
	if err == nil && len(list) == 0 {
		return s.ifEmptied(ctx, newest, found)
	}
	for i := range list {
		e, err := parse(&list[i])
		if err != nil {
			return err
		}
		s.queue(e)
		found(e.Group, e.Backfill != "1")
	}
	return err
}

// ifEmptied reads the whole stream again if the database was emptied, because numbers then
// start again.
func (s *Queue) ifEmptied(ctx context.Context, newest int64, found func(group string, fresh bool)) error {
	if last, err := s.lastNumber(ctx); err != nil || last >= newest {
		return err
	}
	if _, err := s.takeOver(ctx); err != nil { // entries in doubt are in flight on this replica
		return err
	}
	return s.Groups(found)
}

// lastNumber returns the last assigned number, or 0.
func (s *Queue) lastNumber(ctx context.Context) (last int64, err error) {
	err = s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		if last, err = c.Get(ctx, redis.Key("last")).Int64(); errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return last, err
}

// queue adds an entry of the stream to its line.
func (s *Queue) queue(e *streamEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = e.Number
	s.queueLocked(e.Group, e.Number, e.Backfill == "1")
}

func (s *Queue) queueLocked(group string, n int64, backfill bool) {
	l := s.lines[group]
	if l == nil {
		l = &line{}
		s.lines[group] = l
	}
	list := &l.fresh
	if backfill {
		list = &l.older
	}
	if i, had := slices.BinarySearch(*list, n); !had {
		*list = slices.Insert(*list, i, n)
	}
}

// unqueue removes the numbers from a group's line.
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

// unqueueAll removes entries of one group from its line.
func (s *Queue) unqueueAll(entries []ledger.Entry) {
	if len(entries) > 0 {
		s.unqueue(entries[0].Group, numbersOf(entries))
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

// InDoubt implements ledger.Dispatch. Delivery starts with this call, so it first takes over
// the queue.
func (s *Queue) InDoubt(found func(ledger.Entry)) error {
	doubts, err := s.takeOver(context.Background())
	if err != nil {
		return err
	}
	for _, d := range doubts {
		found(d.Entry)
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

// entries reads the entries with the numbers, and returns the numbers of missing or
// unreadable ones.
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
			if err != nil { // unreadable; do not hold up the others
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

// note updates the marks of entries.
func (s *Queue) note(what string, entries []ledger.Entry, of func(m *entryState, e *ledger.Entry)) error {
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

// marksOf returns the marks of the numbers.
func (s *Queue) marksOf(ctx context.Context, numbers []int64) ([]entryState, error) {
	fields := make([]string, len(numbers))
	for i, n := range numbers {
		fields[i] = strconv.FormatInt(n, 10)
	}
	out := make([]entryState, len(numbers))
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

func (s *Queue) MarkSent(entries []ledger.Entry) error {
	s.mu.Lock()
	sent := s.sent
	s.sent += int64(len(entries))
	s.mu.Unlock()
	err := s.note("note what is sent", entries, func(m *entryState, e *ledger.Entry) {
		sent++
		m.Sent, m.Have, m.Losses = sent, e.Have, e.Losses
	})
	if err == nil {
		s.unqueueAll(entries)
	}
	return err
}

func (s *Queue) Requeue(entries []ledger.Entry, reason string) error {
	err := s.note("note failure", entries, func(m *entryState, e *ledger.Entry) {
		m.Sent, m.Attempts, m.Reason, m.Have, m.Losses = 0, m.Attempts+1, reason, e.Have, e.Losses
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range entries {
		s.queueLocked(entries[i].Group, entries[i].Seq, entries[i].Backfill)
	}
	return nil
}

func (s *Queue) MarkDelivered(entries []ledger.Entry, verified bool, _ time.Time) (gone ledger.Size, err error) {
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
	s.unqueueAll(entries)
	return ledger.Size{Turns: int(reply[0]), Bytes: int(reply[1])}, nil
}

func (s *Queue) MarkDead(e *ledger.Entry, reason string) (ledger.Size, error) {
	before, err := s.marksOf(context.Background(), []int64{e.Seq})
	if err != nil {
		return ledger.Size{}, err
	}
	value, err := json.Marshal(entryState{Attempts: before[0].Attempts + 1, Have: e.Have, Losses: e.Losses, Reason: reason})
	if err != nil {
		return ledger.Size{}, err
	}
	reply, err := s.run(context.Background(), "note refusal", deadScript, true, nil, e.Seq, string(value))
	if err != nil {
		return ledger.Size{}, err
	}
	s.unqueue(e.Group, []int64{e.Seq})
	return ledger.Size{Turns: int(reply[0]), Bytes: int(reply[1])}, nil
}
