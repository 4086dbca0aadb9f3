package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// MaxReason bounds the text that says why a turn was not delivered, in characters.
const MaxReason = 300

// Condition is the state of a queued turn, in the words of those who look at the queue.
type Condition string

// The conditions of a queued turn.
const (
	Waiting  Condition = "waiting"
	UnderWay Condition = "under-way" // handed over, and not seen yet
	Dead     Condition = "dead"      // there will be no further attempt
)

// Conditions lists them all.
var Conditions = []Condition{Waiting, UnderWay, Dead}

// Item is a queued turn, for one group.
type Item struct {
	Number    int64     `json:"number"`
	Condition Condition `json:"state"`
	Group     string    `json:"group"`
	Scope     string    `json:"scope"`
	Since     time.Time `json:"since"`
	Bytes     int       `json:"bytes"`
	Attempts  int       `json:"attempts"` // that failed
	Reason    string    `json:"reason,omitempty"`
	User      string    `json:"user,omitempty"` // texts only where they were asked for
	Assistant string    `json:"assistant,omitempty"`
}

// ListOptions says what Items lists.
type ListOptions struct {
	Condition Condition // empty: all
	Group     string    // empty: all
	Limit     int       // at most
	Text      bool      // what was said, too
}

const (
	itemWhere = " FROM turns WHERE " + queued + " AND (?1 = '' OR grp = ?1) AND (?2 = '' OR ?2 = " + conditionOf + ")"

	conditionOf = "CASE state WHEN 'pending' THEN 'waiting' WHEN 'sent' THEN 'under-way' ELSE state END"
)

// Items lists queued turns, the oldest first, and says how many there are in all.
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

// chosenDead are the dead turns of a list of numbers, ?1, or all where that is empty.
const chosenDead = "state = 'dead' AND (?1 = '[]' OR seq IN (SELECT value FROM json_each(?1)))"

func listOf(numbers []int64) string {
	b, _ := json.Marshal(append([]int64{}, numbers...)) // numbers cannot fail
	return string(b)
}

// Retry makes dead turns wait again: those with the numbers, or all if there are no
// numbers.
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
