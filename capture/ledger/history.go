package ledger

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// CutOff is what is noted of an answer that was interrupted.
type CutOff struct{ ID, Group, Said string }

// Cuts returns the first n notes of interrupted answers.
func (s *Ledger) Cuts(ctx context.Context, n int) (list []CutOff, err error) {
	err = each(ctx, s.db, "SELECT turn, grp, digest FROM turns WHERE state = 'cut' ORDER BY seq LIMIT ?", []any{n},
		func(scan func(...any) error) error {
			var c CutOff
			err := scan(&c.ID, &c.Group, &c.Said)
			list = append(list, c)
			return err
		})
	return list, err
}

// RemoveCuts deletes notes that another ledger has now.
func (s *Ledger) RemoveCuts(list []CutOff) error {
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		for _, c := range list {
			if err := run(tx, "DELETE FROM turns WHERE turn = ? AND grp = ? AND state = 'cut'", c.ID, c.Group); err != nil {
				return err
			}
		}
		return nil
	})
}
