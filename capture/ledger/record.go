package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Added is what became of a turn that was to be stored.
type Added struct {
	Groups []string // that had not had it
	Size   Size
}

// Add finishes a write that it has begun, even when its context ends: a turn that
// is stored and not announced would not be delivered before the next start.
func (s *Ledger) Add(ctx context.Context, turns []Turn, now time.Time) (all []Added, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("record a turn: %w", err)
	}
	err = s.db.Write(context.WithoutCancel(ctx), func(tx *sqlite.Tx) error {
		all = all[:0]
		b := batch{now: now}
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM floors)").Scan(&b.floors); err != nil {
			return err
		}
		for i := range turns {
			a, err := b.add(tx, &turns[i])
			if err != nil {
				return err
			}
			all = append(all, a)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record a turn: %w", err)
	}
	return all, nil
}

// batch is what one call adds. Many turns in a row are of one conversation.
type batch struct {
	now    time.Time
	floors bool // something was forgotten once
	owned  owned
}

// owned is what own notes of a turn, on a day.
type owned struct {
	target               graphiti.Target
	owner, session, kind string
	day                  int64
}

func ownedBy(t *Turn, target graphiti.Target, now time.Time) owned {
	return owned{target, t.Owner, t.OfSession(), t.Kind, now.Truncate(24 * time.Hour).Unix()}
}

// Own notes whose the groups of turns are, and which sessions leave something
// there, before anything of them is elsewhere. It need not wait where that is
// known.
func (s *Ledger) Own(ctx context.Context, turns []Turn, now time.Time) error {
	var unknown []int
	for i := range turns {
		for _, target := range turns[i].Targets {
			of := ownedBy(&turns[i], target, now)
			if _, ok := s.owned.Get(of); !ok && (len(unknown) == 0 || ownedBy(&turns[unknown[len(unknown)-1]], target, now) != of) {
				unknown = append(unknown, i)
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, i := range unknown {
			for _, target := range turns[i].Targets {
				if err := own(tx, &turns[i], target, now); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note whose a group is: %w", err)
	}
	for _, i := range unknown {
		for _, target := range turns[i].Targets {
			s.owned.Add(ownedBy(&turns[i], target, now), struct{}{})
		}
	}
	return nil
}

func (b *batch) add(tx *sqlite.Tx, t *Turn) (a Added, err error) {
	for _, target := range t.Targets {
		if b.floors {
			forgotten, err := refused(tx, t, target.Group, b.now)
			if err != nil {
				return a, err
			}
			if forgotten {
				continue
			}
		}
		bytes, err := record(tx, t, target, b.now)
		if err != nil {
			return a, err
		}
		if bytes == 0 {
			continue
		}
		if err := b.own(tx, t, target); err != nil {
			return a, err
		}
		a.Groups = append(a.Groups, target.Group)
		a.Size = a.Size.Plus(Size{1, bytes})
	}
	return a, nil
}

// own notes whose a group is, unless the turn before said so.
func (b *batch) own(tx *sqlite.Tx, t *Turn, target graphiti.Target) error {
	of := ownedBy(t, target, b.now)
	if of == b.owned {
		return nil
	}
	b.owned = of
	return own(tx, t, target, b.now)
}

// recordTurn is the write that decides whether a turn is taken: ?1 the turn, ?2
// the group, ?8 says that it comes from a history, ?9 that it is a text by
// itself. A row that it replaces gets a new place in the order of arrival.
const recordTurn = `INSERT OR REPLACE INTO turns (turn, grp, state, digest, open, at, scope, bytes, backfill, body)
	SELECT ?1, ?2, 'pending', ?3, ?4, ?5, ?6, ?7, ?8, ?10
	WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turn = ?1 AND grp = ?2
			AND NOT (state = 'cut' AND NOT ?8 OR state = 'forgotten' AND ?9))
		AND NOT (?8 AND EXISTS (SELECT 1 FROM turns WHERE grp = ?2 AND digest = ?3))`

// record has a group get what it lacks of a turn: all of it, or what came after
// the parts that it has. It returns the bytes that were stored.
func record(tx *sqlite.Tx, t *Turn, target graphiti.Target, now time.Time) (bytes int, err error) {
	digest := t.Digest()
	if t.Open {
		// What is noted of an interrupted answer is about the end.
		if err := run(tx, "UPDATE OR IGNORE turns SET turn = ? WHERE turn = ? AND grp = ? AND state = 'cut'", t.Rest().ID, t.ID, target.Group); err != nil {
			return 0, err
		}
	}
	for part := t; ; part = part.Rest() {
		body, err := json.Marshal(part)
		if err != nil {
			return 0, err
		}
		r, err := tx.Exec(recordTurn, part.ID, target.Group, digest, t.Open, now.UnixMilli(), string(target.Scope), len(body), t.Backfill, t.Standalone, string(body))
		if err != nil {
			return 0, err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return len(body), err
		}
		if lacks, err := lacksEnd(tx, part.ID, target.Group, digest); err != nil || !lacks || t.Assistant == "" {
			return 0, err
		}
	}
}

// lacksEnd reports whether a group has a turn, or the part of one with that id,
// without the end that the digest knows of.
func lacksEnd(tx *sqlite.Tx, id, group, digest string) (lacks bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM turns WHERE turn = ? AND grp = ? AND open AND digest <> ?)", id, group, digest).Scan(&lacks)
	return lacks, err
}

// CutOff notes that a turn's answer was interrupted: what a history shows of it
// is not taken. What the group has of the turn stays.
func (s *Ledger) CutOff(ctx context.Context, t *Turn, now time.Time) error {
	err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, target := range t.Targets {
			for part := t; ; part = part.Rest() {
				r, err := tx.Exec(`INSERT INTO turns (turn, grp, state, digest, at) VALUES (?, ?, 'cut', ?, ?)
					ON CONFLICT DO UPDATE SET digest = excluded.digest, at = excluded.at WHERE state = 'cut'`,
					part.ID, target.Group, t.Digest(), now.UnixMilli())
				if err != nil {
					return err
				}
				if n, err := r.RowsAffected(); err != nil {
					return err
				} else if n > 0 {
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note an interrupted answer: %w", err)
	}
	return nil
}

// Whole says of each turn whether all of its groups have all of it.
func (s *Ledger) Whole(ctx context.Context, turns []Turn) ([]bool, error) {
	out := make([]bool, len(turns))
	for i := range turns {
		t := &turns[i]
		all := len(t.Targets) > 0
		for _, target := range t.Targets {
			if !all {
				break
			}
			err := s.db.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM turns WHERE turn = ? AND grp = ? AND NOT open AND (state <> 'cut' OR ?))",
				[]any{t.ID, target.Group, t.Backfill}, &all)
			if err != nil {
				return nil, fmt.Errorf("read the ledger: %w", err)
			}
		}
		out[i] = all
	}
	return out, nil
}

// New says of each turn whether a group never had any of it, and may have it.
func (s *Ledger) New(ctx context.Context, group string, turns []Turn) ([]bool, error) {
	ids := make([]string, len(turns))
	for i := range turns {
		ids[i] = turns[i].ID
	}
	list, _ := json.Marshal(ids) // strings only
	had := make(map[string]bool)
	err := each(ctx, s.db, "SELECT turn FROM turns WHERE turn IN (SELECT value FROM json_each(?)) AND grp = ?", []any{string(list), group},
		func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			had[id] = true
			return err
		})
	if err != nil {
		return nil, err
	}
	var floors bool
	if err := s.db.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM floors)", nil, &floors); err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	out := make([]bool, len(turns))
	var asked []any // of the turn before
	var refused bool
	for i := range turns {
		t := &turns[i]
		m := t.Scopes(group)
		if ask := []any{m[0], m[1], m[2], t.Generation}; floors && !slices.Equal(ask, asked) {
			asked = ask
			if err := s.db.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM floors WHERE scope IN (?, ?, ?) AND generation > ?)", ask, &refused); err != nil {
				return nil, fmt.Errorf("read the ledger: %w", err)
			}
		}
		out[i] = !had[t.ID] && !refused
	}
	return out, nil
}

// AddDelivered notes turns that their groups hold already, where nothing is noted
// of them: they need no text. It returns the groups of those. Own comes before it.
func (s *Ledger) AddDelivered(ctx context.Context, turns []Turn, now time.Time) (all []Added, err error) {
	err = s.db.Write(context.WithoutCancel(ctx), func(tx *sqlite.Tx) error {
		all, err = addDelivered(tx, turns, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note delivery: %w", err)
	}
	return all, nil
}

// AddDeliveredLater is AddDelivered that does not wait. What a kill takes of it the
// memory still knows.
func (s *Ledger) AddDeliveredLater(turns []Turn, now time.Time) {
	s.db.Note(func(tx *sqlite.Tx) error {
		_, err := addDelivered(tx, turns, now)
		return err
	})
}

func addDelivered(tx *sqlite.Tx, turns []Turn, now time.Time) (all []Added, err error) {
	n := 0
	all = make([]Added, len(turns))
	for i := range turns {
		t := &turns[i]
		for _, target := range t.Targets {
			r, err := tx.Exec("INSERT INTO turns (turn, grp, state, digest, at) VALUES (?, ?, 'delivered', ?, ?) ON CONFLICT DO NOTHING",
				t.ID, target.Group, t.Digest(), now.UnixMilli())
			if err != nil {
				return nil, err
			}
			if added, err := r.RowsAffected(); err != nil {
				return nil, err
			} else if added == 0 {
				continue
			}
			all[i].Groups = append(all[i].Groups, target.Group)
			n++
		}
	}
	return all, errors.Join(count(tx, "delivered", n), count(tx, "verified", n))
}

// own notes whose a group is, and which session left something there.
func own(tx *sqlite.Tx, t *Turn, target graphiti.Target, now time.Time) error {
	_, err := tx.Exec("INSERT INTO groups VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		target.Group, t.Owner, string(target.Scope), t.KeyOf(target.Scope))
	if err == nil && t.OfSession() != "" {
		_, err = tx.Exec("INSERT INTO talks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE at < excluded.at",
			t.OfSession(), t.Owner, target.Group, now.Truncate(24*time.Hour).Unix())
	}
	if err == nil && slices.Contains(graphiti.Kinds, t.Kind) {
		_, err = tx.Exec("INSERT INTO promoted VALUES (?) ON CONFLICT DO NOTHING", target.Group)
	}
	return err
}
