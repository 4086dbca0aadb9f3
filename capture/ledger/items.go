package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Condition is the state of a queued turn, in the words of the queue commands.
type Condition string

// The conditions of a queued turn.
const (
	Waiting  Condition = "waiting"
	UnderWay Condition = "under-way" // sent, not verified
	Dead     Condition = "dead"      // no further attempts
)

// Conditions lists all conditions.
var Conditions = []Condition{Waiting, UnderWay, Dead}

// Item is a queued turn of one group.
type Item struct {
	Number    int64     `json:"number"`
	Condition Condition `json:"state"`
	Group     string    `json:"group"`
	Turn      string    `json:"-"`
	Scope     string    `json:"scope"`
	Since     time.Time `json:"since"`
	Attempts  int       `json:"attempts"`
	Reason    string    `json:"reason,omitempty"`
	User      string    `json:"user,omitempty"` // texts only with ListOptions.Text
	Assistant string    `json:"assistant,omitempty"`
}

// ListOptions selects the turns that Items returns.
type ListOptions struct {
	Condition Condition // "" selects all
	Group     string    // "" selects all
	Limit     int       // most items
	Text      bool      // include the texts
}

const (
	// queued matches the states of turns that Graphiti lacks. The indexes use the same expression.
	queued = "state IN ('pending', 'sent', 'dead')"

	itemWhere = " FROM turns WHERE " + queued + " AND (?1 = '' OR grp = ?1) AND (?2 = '' OR ?2 = " + conditionOf + ")"

	conditionOf = "CASE state WHEN 'pending' THEN 'waiting' WHEN 'sent' THEN 'under-way' ELSE state END"
)

// Items returns queued copies, oldest first, without texts, and the number of all matching
// ones.
func (s *Ledger) Items(ctx context.Context, o ListOptions) (list []Item, all int, err error) {
	args := []any{o.Group, string(o.Condition)}
	if err := s.db.QueryRow(ctx, "SELECT count(*)"+itemWhere, args, &all); err != nil {
		return nil, 0, err
	}
	list = []Item{}
	err = each(ctx, s.db, "SELECT seq, "+conditionOf+", grp, turn, coalesce((SELECT scope FROM owners WHERE owners.grp = turns.grp LIMIT 1), ''), at, sends, error"+itemWhere+" ORDER BY seq LIMIT ?3",
		append(args, o.Limit), func(scan func(...any) error) error {
			var i Item
			var since int64
			err := scan(&i.Number, &i.Condition, &i.Group, &i.Turn, &i.Scope, &since, &i.Attempts, &i.Reason)
			i.Since = time.UnixMilli(since)
			list = append(list, i)
			return err
		})
	return list, all, err
}

// Counts counts the turns that Graphiti lacks.
type Counts struct {
	Pending, Dead int
	Oldest        time.Time // arrival of the oldest waiting one, or zero
	Withdrawn     int       // parts that were forgotten and may still be in Graphiti
}

// Counts returns the numbers of queued copies.
func (s *Ledger) Counts(ctx context.Context) (n Counts, err error) {
	var at int64
	err = s.db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state <> 'dead'), count(*) FILTER (WHERE state = 'dead'),
		coalesce((SELECT at FROM turns WHERE `+queued+` AND state <> 'dead' ORDER BY seq LIMIT 1), 0), (SELECT count(*) FROM withdrawn) FROM turns WHERE `+queued, nil,
		&n.Pending, &n.Dead, &at, &n.Withdrawn)
	if at > 0 {
		n.Oldest = time.UnixMilli(at)
	}
	return n, err
}

// chosenDead selects the dead turns with the numbers in ?1, or all dead turns if ?1 is
// empty.
const chosenDead = " WHERE state = 'dead' AND (?1 = '[]' OR seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)))"

// jsonOf returns a list for json_each.
func jsonOf[V int64 | string](list []V) string {
	b, _ := json.Marshal(append([]V{}, list...)) // cannot fail: numbers or texts
	return string(b)
}

// Retry queues dead copies again, all without numbers, and returns how many.
func (s *Ledger) Retry(numbers []int64) (n int, err error) {
	return s.change("retry turns", "UPDATE turns SET state = 'pending', losses = 0, error = ''"+chosenDead, numbers, "")
}

// Send queues the turns since a time that Graphiti never got, and returns their number. Turns of
// Graphiti's history have a position in the order of sending.
func (s *Ledger) Send(since time.Time) (n int, err error) {
	err = s.write("send turns", func(tx *database.Tx) error {
		r, err := tx.Exec("UPDATE turns SET state = 'pending', backfill = TRUE WHERE state = 'delivered' AND sends = 0 AND sent = 0 AND at >= ?", since.UnixMilli())
		if err != nil {
			return err
		}
		changed, err := r.RowsAffected()
		n = int(changed)
		return err
	})
	return n, err
}

// Drop deletes dead copies, all without numbers, and returns how many. A client's history
// cannot queue dropped turns again.
func (s *Ledger) Drop(numbers []int64) (n int, err error) {
	return s.change("drop turns", "UPDATE turns SET state = 'dropped', error = ''"+chosenDead, numbers, "dropped")
}

func (s *Ledger) change(what, statement string, numbers []int64, total string) (changed int, err error) {
	err = s.write(what, func(tx *database.Tx) error {
		r, err := tx.Exec(statement, jsonOf(numbers))
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if changed = int(n); err != nil || total == "" {
			return err
		}
		return count(tx, total, changed)
	})
	return changed, err
}
