package embedded

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// pageRows is the number of entries per query. No query is open while the caller uses them.
const pageRows = 256

func (e *Store) Rows(ctx context.Context, group string, f graphiti.Filter) iter.Seq2[graphiti.Row, error] {
	return func(yield func(graphiti.Row, error) bool) {
		err := e.rows(ctx, group, &f, func(r *graphiti.Row) bool { return yield(*r, nil) })
		if err != nil {
			yield(graphiti.Row{}, fmt.Errorf("list messages: %w", err))
		}
	}
}

// rows calls f until it returns false.
func (e *Store) rows(ctx context.Context, group string, filter *graphiti.Filter, f func(*graphiti.Row) bool) error {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return err
	}
	var ids []int64
	named := len(filter.Names)+len(filter.Keys) > 0
	if named {
		if ids, err = e.named(ctx, g, filter); err != nil {
			return err
		}
	}
	if !named || len(filter.IDs) > 0 {
		messages, talks, clients, err := e.outline(ctx, group)
		if err != nil {
			return err
		}
		chosen := choose(messages, talks, clients, filter)
		if len(filter.Words) > 0 {
			if chosen, err = e.withWords(ctx, group, g, chosen, filter); err != nil {
				return err
			}
		}
		if !filter.Text && !named && filter.Client == "" {
			headings(group, chosen, talks, f)
			return nil
		}
		for i := range chosen {
			ids = append(ids, g<<placeBits|int64(chosen[i].place))
		}
	}
	if named {
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return e.pages(ctx, group, ids, filter, !named && filter.Client == "", f)
}

// withWords returns those of chosen messages with words of a filter, in its order.
func (e *Store) withWords(ctx context.Context, group string, number int64, chosen []outlined, f *graphiti.Filter) (with []outlined, err error) {
	found, err := e.wordsAt(ctx, group, number, f.Words)
	if err != nil {
		return nil, err
	}
	for _, m := range chosen {
		if n := found[m.place]; n == len(f.Words) || n > 0 && !f.Newest {
			with = append(with, m)
		}
	}
	if !f.Newest {
		slices.SortStableFunc(with, func(a, b outlined) int {
			return cmp.Or(found[b.place]-found[a.place], cmp.Compare(b.said, a.said), cmp.Compare(b.place, a.place))
		})
	}
	return with, nil
}

// wordsAt returns the numbers of words that messages of a group have, by their places. It reads the
// texts while the index is built: after a start, a list must not wait for it.
func (e *Store) wordsAt(ctx context.Context, group string, number int64, wanted []string) (found map[uint32]int, err error) {
	found = make(map[uint32]int)
	index := e.index.entry(group)
	select {
	case <-index.built:
		for _, w := range wanted {
			places, _ := index.group.find(w, math.MaxInt)
			for _, p := range places {
				found[uint32(p)]++ //nolint:gosec // a place has 32 bits
			}
		}
		return found, index.err
	default:
	}
	var place int64
	var text sql.RawBytes
	first := number << placeBits
	err = e.db.Each(ctx, "SELECT id & 4294967295, content FROM messages WHERE id > ? AND id <= ?", []any{first, first | maxPlace}, func(scan func(...any) error) error {
		if err := scan(&place, &text); err != nil || !mayHave(text, wanted) {
			return err
		}
		has := words.Of(plain(string(text)), maxWords)
		for _, w := range wanted {
			if slices.Contains(has, w) {
				found[uint32(place)]++ //nolint:gosec // a place has 32 bits
			}
		}
		return nil
	})
	return found, err
}

// mayHave reports whether a text may have one of some words: in ASCII, it has their first letters,
// or the first digit of a number such as 1,250.
func mayHave(text []byte, wanted []string) bool {
	small := bytes.ToLower(text)
	return slices.ContainsFunc(wanted, func(w string) bool {
		begins := w[:max(1, min(3, len(w)-1))] // the last letter may differ
		if w[0] <= '9' {
			begins = w[:1]
		}
		return bytes.Contains(small, []byte(begins))
	}) || bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// choose returns the messages that a filter selects, regardless of Names, Keys and Words.
func choose(messages []outlined, talks, clients []string, f *graphiti.Filter) []outlined {
	chosen := messages
	if len(f.IDs)+len(f.Roles) > 0 || f.Session+f.Client != "" || !f.Before.IsZero() || !f.Since.IsZero() {
		wanted := make(map[graphiti.ID]bool, len(f.IDs))
		for _, id := range f.IDs {
			wanted[id] = true
		}
		talk := slices.Index(talks, f.Session)
		before := f.Before.UnixMilli()
		if f.Before.Nanosecond()%int(time.Millisecond) > 0 {
			before++
		}
		since := int64(math.MinInt64)
		if !f.Since.IsZero() {
			since = f.Since.UnixMilli()
		}
		isClient := make([]bool, len(clients))
		for i, name := range clients {
			isClient[i] = f.IsClient(name)
		}
		chosen = nil
		for i := range messages {
			m := &messages[i]
			if (len(wanted) == 0 || wanted[m.id]) && (f.Session == "" || int(m.talk) == talk) &&
				(f.Client == "" || int(m.client) >= len(clients) || isClient[m.client]) && (len(f.Roles) == 0 || slices.Contains(f.Roles, roles[m.role])) && m.said >= since && (f.Before.IsZero() || m.said < before) {
				chosen = append(chosen, *m)
			}
		}
	}
	if !f.Newest {
		return chosen
	}
	if len(chosen) == len(messages) { // the outline's own
		chosen = slices.Clone(chosen)
	}
	slices.SortFunc(chosen, func(a, b outlined) int { return cmp.Or(cmp.Compare(b.said, a.said), cmp.Compare(b.place, a.place)) })
	return chosen
}

// headings calls f for rows without texts, until it returns false.
func headings(group string, chosen []outlined, talks []string, f func(*graphiti.Row) bool) {
	var r graphiti.Row // one for all, because it escapes
	for i := range chosen {
		m := &chosen[i]
		r = graphiti.Row{ID: m.id, Group: group, Turn: m.turn, Session: talks[m.talk], Role: roles[m.role], Said: time.UnixMilli(m.said), Rest: len(chosen) - i - 1}
		if !f(&r) {
			return
		}
	}
}

// named returns the ids of a group's messages with a name or a key.
func (e *Store) named(ctx context.Context, group int64, f *graphiti.Filter) (ids []int64, err error) {
	keys := []int64{}
	for _, key := range f.Keys {
		if id, err := strconv.ParseInt(key, 10, 64); err == nil {
			keys = append(keys, id)
		}
	}
	byName, _ := json.Marshal(append([]string{}, f.Names...)) // strings only
	byKey, _ := json.Marshal(keys)                            // numbers only
	err = e.db.Each(ctx, `SELECT m.id FROM json_each(?2) j CROSS JOIN messages m ON m.grp = ?1 AND m.name = j.value
		UNION SELECT m.id FROM json_each(?3) j CROSS JOIN messages m ON m.id = CAST(j.value AS BIGINT) AND m.grp = ?1`, []any{group, string(byName), string(byKey)}, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// pages reads messages in the order of ids and calls f for their rows, until it returns false.
// exact reports whether the filter selects all entries with these ids.
func (e *Store) pages(ctx context.Context, group string, ids []int64, filter *graphiti.Filter, exact bool, f func(*graphiti.Row) bool) error {
	for len(ids) > 0 {
		page := ids[:min(pageRows, len(ids))]
		ids = ids[len(page):]
		list, states, err := e.page(ctx, group, page, filter.Statements)
		if err != nil {
			return err
		}
		for i := range list {
			sides := list[i].Sides()
			if filter.Newest {
				slices.Reverse(sides)
			}
			for j := range sides {
				sides[j].Rest = len(ids) + len(list) - i - 1
				if gate := states[list[i].Key]; filter.Statements && gate <= 0 && (gate < perhapsStates || !words.States(sides[j].Text)) {
					continue
				}
				if (exact && len(sides) == 1 || filter.Has(&sides[j])) && !f(&sides[j]) {
					return nil
				}
			}
		}
	}
	return nil
}

// perhapsStates is the gate from which on the words decide whether a message is a statement: a list
// that lacks a fact is worse than one with a request.
const perhapsStates = -0.35

// page reads messages in the order of ids. With judge, states has the gates of those with a vector,
// by their keys.
func (e *Store) page(ctx context.Context, group string, ids []int64, judge bool) (list []graphiti.Row, states map[string]float64, err error) {
	numbers, _ := json.Marshal(ids) // numbers only
	list, states = make([]graphiti.Row, 0, len(ids)), make(map[string]float64)
	model := ""
	if judge && e.ownModel() {
		model = e.mean.model
	}
	err = e.db.Each(ctx, `SELECT m.id, m.name, m.speaker, m.role, m.content, m.source, m.said, v.vec
		FROM json_each(?) j CROSS JOIN messages m ON m.id = CAST(j.value AS BIGINT) LEFT JOIN vectors v ON v.id = m.id AND v.model = ? ORDER BY j.key`, []any{string(numbers), model}, func(scan func(...any) error) error {
		var id, said int64
		var vec []byte
		r := graphiti.Row{Group: group}
		err := scan(&id, &r.Name, &r.Speaker, &r.Role, &r.Text, &r.Source, &said, &vec)
		r.Key, r.Said = strconv.FormatInt(id, 10), time.UnixMilli(said)
		if list = append(list, r); len(vec) > 0 {
			states[r.Key] = e.fit.States.Of(int8sOf(vec))
		}
		return err
	})
	return list, states, err
}
