package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// MaxReason is the most characters of a stored delivery error.
const MaxReason = 300

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
	Scope     string    `json:"scope"`
	Since     time.Time `json:"since"`
	Bytes     int       `json:"bytes"`
	Attempts  int       `json:"attempts"` // failed attempts
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
	itemWhere = " FROM turns WHERE " + queued + " AND (?1 = '' OR grp = ?1) AND (?2 = '' OR ?2 = " + conditionOf + ")"

	conditionOf = "CASE state WHEN 'pending' THEN 'waiting' WHEN 'sent' THEN 'under-way' ELSE state END"
)

// Items returns queued turns, oldest first, and the number of all matching turns.
func (s *Ledger) Items(ctx context.Context, o ListOptions) (list []Item, all int, err error) {
	args := []any{o.Group, string(o.Condition)}
	if err := s.db.QueryRow(ctx, "SELECT count(*)"+itemWhere, args, &all); err != nil {
		return nil, 0, err
	}
	list = []Item{}
	err = each(ctx, s.db, "SELECT seq, "+conditionOf+", grp, scope, at, bytes, attempts, error, iif(?3, body, '{}')"+itemWhere+" ORDER BY seq LIMIT ?4",
		append(args, o.Text, o.Limit), func(scan func(...any) error) error {
			var i Item
			var since int64
			var body []byte
			if err := scan(&i.Number, &i.Condition, &i.Group, &i.Scope, &since, &i.Bytes, &i.Attempts, &i.Reason, &body); err != nil {
				return err
			}
			var t Turn
			if err := json.Unmarshal(body, &t); err != nil {
				return err
			}
			i.Since, i.User, i.Assistant = time.UnixMilli(since), t.User, t.Assistant
			list = append(list, i)
			return nil
		})
	return list, all, err
}

// chosenDead selects the dead turns with the numbers in ?1, or all dead turns if ?1 is
// empty.
const chosenDead = "state = 'dead' AND (?1 = '[]' OR seq IN (SELECT value FROM json_each(?1)))"

func listOf(numbers []int64) string {
	b, _ := json.Marshal(append([]int64{}, numbers...)) // cannot fail: numbers only
	return string(b)
}

// Retry returns dead turns to pending: those with the numbers, or all if numbers is empty.
func (s *Ledger) Retry(numbers []int64) (groups []string, back Size, err error) {
	err = s.write("retry turns", func(tx *sqlite.Tx) error {
		groups, back = nil, Size{}
		rows, err := tx.Query("UPDATE turns SET state = 'pending', losses = 0, error = '' WHERE "+chosenDead+" RETURNING grp, bytes", listOf(numbers))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var group string
			one := Size{Turns: 1}
			if err := rows.Scan(&group, &one.Bytes); err != nil {
				return err
			}
			groups, back = append(groups, group), back.Plus(one)
		}
		return rows.Err()
	})
	return groups, back, err
}
