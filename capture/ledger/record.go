package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Added is the result of storing a turn.
type Added struct {
	Groups []string // groups that lacked the turn
}

// Add stores each turn and its messages for those of its groups that lack it, in one
// transaction. It rejects turns of scopes with a newer generation. It completes a started write even
// if its context ends: a stored but unannounced turn would wait for the next start.
func (s *Ledger) Add(ctx context.Context, turns []Turn, now time.Time) (all []Added, err error) {
	return batch{Ledger: s, now: now, copied: s.worth != nil}.store(ctx, turns)
}

// errTried takes back a transaction that only counts.
var errTried = errors.New("tried")

// New returns the number of turns that Add would store, and stores nothing.
func (s *Ledger) New(ctx context.Context, turns []Turn, now time.Time) (n int, err error) {
	all, err := batch{Ledger: s, now: now, counts: true}.store(ctx, turns)
	for _, a := range all {
		if len(a.Groups) > 0 {
			n++
		}
	}
	return n, err
}

// Keep is Add for turns that Graphiti has.
func (s *Ledger) Keep(ctx context.Context, turns []Turn, now time.Time) ([]Added, error) {
	return batch{Ledger: s, now: now}.store(ctx, turns)
}

// batch stores turns.
type batch struct {
	*Ledger
	now    time.Time
	copied bool // the turns wait to be copied
	counts bool // the transaction is rolled back
}

func (b batch) store(ctx context.Context, turns []Turn) (all []Added, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("record a turn: %w", err)
	}
	err = b.db.Write(context.WithoutCancel(ctx), func(tx *database.Tx) error {
		all = all[:0]
		if err := b.memory.Lock(tx, groupsOf(turns)); err != nil {
			return err
		}
		n := int64(0)
		for i := range turns {
			a, err := b.add(tx, &turns[i])
			if err != nil {
				return err
			}
			all, n = append(all, a), n+int64(len(a.Groups))
		}
		if b.counts {
			return errTried
		}
		if b.worth == nil {
			tx.Committed(func() { b.kept.Add(n) })
		}
		return nil
	})
	if err != nil && !errors.Is(err, errTried) {
		return nil, fmt.Errorf("record a turn: %w", err)
	}
	return all, nil
}

// groupsOf returns the groups of turns.
func groupsOf(turns []Turn) (groups []string) {
	for i := range turns {
		for _, target := range turns[i].Targets {
			groups = append(groups, target.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// add stores a turn and its messages for those of its groups that lack it.
func (b batch) add(tx *database.Tx, t *Turn) (a Added, err error) {
	for _, target := range t.Targets {
		known, err := keys(tx, t, target.Group)
		if err == nil && !known {
			known, err = refused(tx, t, target.Group, b.now)
		}
		if err != nil {
			return a, err
		}
		if known {
			continue
		}
		part, err := b.record(tx, t, target)
		if err != nil {
			return a, err
		}
		if part == nil {
			continue
		}
		if err := b.own(tx, t, target); err != nil {
			return a, err
		}
		if !b.counts {
			if err := b.memory.Put(tx, target.Group, b.say(part, target.Scope)); err != nil {
				return a, err
			}
		}
		a.Groups = append(a.Groups, target.Group)
	}
	return a, nil
}

// minKey is the shortest id that identifies an answer. Some local servers number their
// answers, or choose from a few ids.
const minKey = 20

// keys stores the keys of a turn. known reports whether the turn is a backfill, and the
// group had one of them.
func keys(tx *database.Tx, t *Turn, group string) (known bool, err error) {
	for _, key := range t.Keys {
		if len(key) < minKey {
			continue
		}
		r, err := tx.Exec("INSERT INTO answers VALUES (?, ?) ON CONFLICT DO NOTHING", key, group)
		if err != nil {
			return false, err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return false, err
		}
		known = known || n == 0 && t.Backfill
	}
	return known, nil
}

// recordTurn inserts a turn that its group does not have. ?1 is the turn, ?2 the group, ?8 marks a
// backfill, ?9 an imported turn and ?12 a standalone text. ?11 is 1 if Graphiti has the turn. Equal
// texts do not make two imported turns one: transcripts have each turn once. An interrupted answer to
// the same message does not prevent an open turn, ?4. A replaced row moves to the end of the order of
// arrival.
const recordTurn = `INSERT INTO turns (turn, grp, state, digest, open, at, backfill, generation, imported, owner, sent)
	SELECT ?1, ?2, ?7, ?3, ?4, ?5, ?8, ?6, ?9, ?10, ?11
	WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turn = ?1 AND grp = ?2
			AND NOT (state = 'cut' AND NOT ?8 OR state = 'forgotten' AND ?12))
		AND NOT (?8 AND EXISTS (SELECT 1 FROM turns WHERE grp = ?2 AND ` + anyState + ` AND digest = ?3 AND NOT (imported AND ?9) AND NOT (state = 'cut' AND ?4)))
	ON CONFLICT (turn, grp) DO UPDATE SET seq = (SELECT max(seq) + 1 FROM turns), state = excluded.state, digest = excluded.digest, open = excluded.open, at = excluded.at,
		backfill = excluded.backfill, generation = excluded.generation, imported = excluded.imported, sent = excluded.sent, sends = 0, losses = 0, error = '', owner = excluded.owner`

// record stores the parts of a turn that a group lacks, and returns them, or nil if the group
// has the whole turn.
func (b batch) record(tx *database.Tx, t *Turn, target graphiti.Target) (part *Turn, err error) {
	digest := t.Digest()
	if t.Open {
		// An interrupted answer affects only the end of the turn.
		if err := run(tx, "UPDATE turns SET turn = ?1 WHERE turn = ?2 AND grp = ?3 AND state = 'cut' AND NOT EXISTS (SELECT 1 FROM turns WHERE turn = ?1 AND grp = ?3)", t.Rest().ID, t.ID, target.Group); err != nil {
			return nil, err
		}
	}
	for part = t; ; part = part.Rest() {
		state, sent := "delivered", 0
		if b.copied && b.worth(part) {
			state = "pending"
		} else if b.worth != nil && !b.copied {
			sent = 1
		}
		r, err := tx.Exec(recordTurn, part.ID, target.Group, digest, t.Open, b.now.UnixMilli(), t.Generation, state, t.Backfill, t.Backfill && t.Import != "", t.Owner, sent, t.Standalone)
		if err != nil {
			return nil, err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return part, err
		}
		if lacks, err := lacksEnd(tx, part.ID, target.Group, digest); err != nil || !lacks || t.Assistant == "" {
			return nil, err
		}
	}
}

// lacksEnd reports whether a group has a turn, or a part with that ID, without the end that
// the digest includes.
func lacksEnd(tx *database.Tx, id, group, digest string) (lacks bool, err error) {
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM turns WHERE turn = ? AND grp = ? AND open AND digest <> ?)", id, group, digest).Scan(&lacks)
	return lacks, err
}

// CutOff records a turn that is not stored, so that no history and no import can add it: its
// answer was interrupted, or memory was off. It stores no text. Stored parts of the turn stay.
func (s *Ledger) CutOff(ctx context.Context, t *Turn, now time.Time) error {
	err := s.db.Write(ctx, func(tx *database.Tx) error {
		for _, target := range t.Targets {
			if _, err := keys(tx, t, target.Group); err != nil {
				return err
			}
			for part := t; ; part = part.Rest() {
				r, err := tx.Exec(`INSERT INTO turns AS t (turn, grp, state, digest, at) VALUES (?, ?, 'cut', ?, ?)
					ON CONFLICT (turn, grp) DO UPDATE SET digest = excluded.digest, at = excluded.at WHERE t.state = 'cut'`,
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
		return fmt.Errorf("record a turn that is not stored: %w", err)
	}
	return nil
}

// Whole reports for each turn whether all of its groups have all of it.
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

// own records the owner of a group and the session of a turn.
func (b batch) own(tx *database.Tx, t *Turn, target graphiti.Target) error {
	err := run(tx, "INSERT INTO owners VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		target.Group, t.Owner, string(target.Scope), t.KeyOf(target.Scope))
	for _, session := range []string{t.OfSession(), t.Import} {
		if err != nil || session == "" {
			continue
		}
		err = run(tx, "INSERT INTO sessions AS s VALUES (?, ?, ?, ?) ON CONFLICT (session, owner, grp) DO UPDATE SET at = excluded.at WHERE s.at < excluded.at",
			session, t.Owner, target.Group, b.now.Truncate(24*time.Hour).Unix())
	}
	if err == nil && slices.Contains(graphiti.Kinds, t.Kind) {
		err = run(tx, "INSERT INTO promoted VALUES (?) ON CONFLICT DO NOTHING", target.Group)
	}
	return err
}
