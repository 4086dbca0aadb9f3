package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// CutPrefix begins the ids under which it is noted, among the turns that groups
// have had, that an answer came to no clean end.
const CutPrefix = "cut:"

func (s *Ledger) CutOff(ctx context.Context, t *Turn, now time.Time) error {
	said := t.Digest()
	err := s.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, target := range t.Targets {
			_, err := tx.Exec("INSERT INTO seen (turn, grp, at, said) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at, said = excluded.said",
				CutPrefix+t.ID, target.Group, now.Unix(), said)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note an answer that was cut off: %w", err)
	}
	return nil
}

// Whole says of each turn whether all of its groups have all of it.
func (s *Ledger) Whole(ctx context.Context, turns []Turn) ([]bool, error) {
	out := make([]bool, len(turns))
	for i := range turns {
		all := len(turns[i].Targets) > 0
		for _, target := range turns[i].Targets {
			if !all {
				break
			}
			err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM spool WHERE turn = ?1 AND grp = ?2 AND open = 0)
				OR EXISTS (SELECT 1 FROM seen WHERE turn = ?1 AND grp = ?2 AND open = 0)`, []any{turns[i].ID, target.Group}, &all)
			if err != nil {
				return nil, fmt.Errorf("read spool: %w", err)
			}
		}
		out[i] = all
	}
	return out, nil
}

// CutOff is what is noted of an answer that was interrupted.
type CutOff struct{ ID, Group, Said string }

// Cuts returns the first n of those that were noted.
func (s *Ledger) Cuts(ctx context.Context, n int) (list []CutOff, err error) {
	err = each(ctx, s.db, "SELECT turn, grp, said FROM seen WHERE turn >= ? AND turn < ? LIMIT ?", []any{CutPrefix, "cut;", n},
		func(scan func(...any) error) error {
			var c CutOff
			err := scan(&c.ID, &c.Group, &c.Said)
			list = append(list, c)
			return err
		})
	return list, err
}

// RemoveCuts takes out what another ledger has noted.
func (s *Ledger) RemoveCuts(list []CutOff) error {
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		for _, c := range list {
			if _, err := tx.Exec("DELETE FROM seen WHERE turn = ? AND grp = ?", c.ID, c.Group); err != nil {
				return err
			}
		}
		return nil
	})
}
