package ledger

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Withdrawn is a part of a group that was forgotten here and may be in Graphiti: a message, a turn,
// a session's messages until a time, or without any of them the whole group.
type Withdrawn struct {
	ID      int64
	Group   string
	Session string // its hash
	Turn    string
	Message string // graphiti.MessageID of its name
	Sent    int64  // as in Copy, if Graphiti may process it later
	At      time.Time
}

// Whole reports whether the whole group was forgotten.
func (w *Withdrawn) Whole() bool { return w.Session+w.Turn+w.Message == "" }

// Means returns the names of the forgotten messages in an episode of the group.
func (w *Withdrawn) Means(e *graphiti.Row) (names []string) {
	for _, side := range e.Sides() {
		meant := !side.Said.After(w.At) && (w.Session == "" || ofSession(&side, w.Session))
		switch turn, _ := graphiti.TurnOf(side.Name); {
		case w.Message != "":
			meant = graphiti.MessageID(side.Name) == w.Message
		case w.Turn != "":
			meant = turn == w.Turn || side.Name == w.Turn
		}
		if meant {
			names = append(names, side.Name)
		}
	}
	return names
}

// unprovenFor is the retention of the knowledge that Graphiti has accepted a turn without a proof
// that it has processed it.
const unprovenFor = time.Hour

// unproven selects the turns of a group that Graphiti may process later.
const unproven = "SELECT turn, sent FROM turns" + ofGroup + "AND generation < ?2 AND sent > 0 AND (state = 'sent' OR state = 'pending' AND sends > 0 OR state = 'delivered' AND sent > ?3)"

// withdraw records the remainder of a forget in Graphiti. names are those of the deleted messages, unless
// the part is the whole group.
func (s *Ledger) withdraw(tx *database.Tx, part Part, generation int64, names []string, now time.Time) error {
	if s.worth == nil || graphiti.CheckGroup(part.Group) != nil { // such as the distilled facts of a group
		return nil
	}
	add := func(session, turn, message string, sent int64) error { // once, also if it is forgotten again
		const same = " FROM withdrawn WHERE grp = ?1 AND session = ?2 AND turn = ?3 AND message = ?4"
		if err := run(tx, "DELETE"+same+" AND sent = 0", part.Group, session, turn, message); err != nil {
			return err
		}
		return run(tx, "INSERT INTO withdrawn (grp, session, turn, message, sent, at) SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS (SELECT 1"+same+")",
			part.Group, session, turn, message, sent, now.UnixMilli())
	}
	turns := make(map[string]bool)
	for _, name := range names {
		turn, _ := graphiti.TurnOf(name)
		turns[turn] = true
	}
	rows, err := tx.Query(unproven, part.Group, generation, now.Add(-unprovenFor).UnixMicro())
	if err != nil {
		return err
	}
	defer rows.Close()
	sent := make(map[string]int64)
	for rows.Next() {
		var turn string
		var at int64
		if err := rows.Scan(&turn, &at); err != nil {
			return err
		}
		if part.whole() || turns[turn] {
			sent[turn] = at
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if part.Message != "" {
		for _, at := range sent {
			return add("", "", part.Message, at)
		}
		return add("", "", part.Message, 0)
	}
	if err := add(graphiti.SessionHash(part.Session), "", "", 0); err != nil {
		return err
	}
	for turn, at := range sent {
		if err := add("", turn, "", at); err != nil {
			return err
		}
	}
	return nil
}

// Withdrawn returns the forgotten parts of a group, or of all.
func (s *Ledger) Withdrawn(ctx context.Context, group string) (list []Withdrawn, err error) {
	err = each(ctx, s.db, "SELECT id, grp, session, turn, message, sent, at FROM withdrawn WHERE ?1 IN ('', grp) ORDER BY id", []any{group},
		func(scan func(...any) error) error {
			var w Withdrawn
			var at int64
			err := scan(&w.ID, &w.Group, &w.Session, &w.Turn, &w.Message, &w.Sent, &at)
			w.At = time.UnixMilli(at)
			list = append(list, w)
			return err
		})
	return list, err
}

// Settle deletes rows of Withdrawn.
func (s *Ledger) Settle(list []Withdrawn) error {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	return s.deliver("settle forgotten parts", func(tx *database.Tx) error {
		return run(tx, "DELETE FROM withdrawn WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", jsonOf(ids))
	})
}
