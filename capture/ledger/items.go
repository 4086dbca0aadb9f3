package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// MaxReason bounds what is kept of why a turn was not delivered, in
// characters.
const MaxReason = 300

// Condition is what became of a turn so far.
type Condition string

// The conditions of a turn in the spool.
const (
	Waiting  Condition = "waiting"
	UnderWay Condition = "under-way" // handed over, and not seen yet
	Dead     Condition = "dead"      // there will be no further attempt
)

// Conditions lists them all.
var Conditions = []Condition{Waiting, UnderWay, Dead}

// Item is a turn in the spool, for one group.
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

// ListOptions says what List lists.
type ListOptions struct {
	Condition Condition // empty: all
	Group     string    // empty: all
	Limit     int       // at most
	Text      bool      // what was said, too
}

const letterWhere = ` FROM spool WHERE (?1 = '' OR grp = ?1) AND (?2 = ''
	OR ?2 = 'dead' AND dead = 1 OR ?2 = 'under-way' AND dead = 0 AND sent > 0 OR ?2 = 'waiting' AND dead = 0 AND sent = 0)`

func (s *Ledger) Items(ctx context.Context, o ListOptions) (list []Item, all int, err error) {
	args := []any{o.Group, string(o.Condition)}
	if err := s.db.QueryRow(ctx, "SELECT count(*)"+letterWhere, args, &all); err != nil {
		return nil, 0, err
	}
	list = []Item{}
	err = each(ctx, s.db, `SELECT seq, CASE WHEN dead THEN 'dead' WHEN sent > 0 THEN 'under-way' ELSE 'waiting' END,
		grp, scope, born, bytes, attempts, error, iif(?3, body, '{}')`+letterWhere+` ORDER BY seq LIMIT ?4`,
		append(args, o.Text, o.Limit), func(scan func(...any) error) error {
			var l Item
			var born int64
			var body []byte
			if err := scan(&l.Number, &l.Condition, &l.Group, &l.Scope, &born, &l.Bytes, &l.Attempts, &l.Reason, &body); err != nil {
				return err
			}
			var t Turn
			if err := json.Unmarshal(body, &t); err != nil {
				return err
			}
			l.Since, l.User, l.Assistant = time.UnixMilli(born), t.User, t.Assistant
			list = append(list, l)
			return nil
		})
	return list, all, err
}

func (s *Ledger) Retry(numbers []int64) (groups []string, back Size, err error) {
	err = s.write("retry turns", func(tx *sqlite.Tx) error {
		groups, back = nil, Size{}
		return forDead(tx, "UPDATE spool SET dead = 0, losses = 0, error = '' WHERE dead = 1 AND (?1 OR seq = ?2) RETURNING grp, bytes",
			numbers, func(scan func(...any) error) error {
				var group string
				one := Size{Turns: 1}
				err := scan(&group, &one.Bytes)
				groups, back = append(groups, group), back.Plus(one)
				return err
			})
	})
	return groups, back, err
}

// forDead runs a statement for each number, or once for all dead turns when
// there are none; ?1 says that it is for all, ?2 is the number.
func forDead(tx *sqlite.Tx, statement string, numbers []int64, row func(scan func(...any) error) error) error {
	all := len(numbers) == 0
	if all {
		numbers = []int64{0}
	}
	for _, n := range numbers {
		if err := rowsIn(tx, statement, []any{all, n}, row); err != nil {
			return err
		}
	}
	return nil
}
