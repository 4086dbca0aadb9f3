package ledger

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Prune deletes the rows of settled turns older than SeenFor, and those before the newest
// most rows. It also deletes generations and sessions older than SeenFor.
//
// It goes by the order of arrival, because an index by time would cost a write for every
// turn. A row therefore outlives its time if an earlier row was settled later.
func (s *Ledger) Prune(now time.Time, most int) error {
	const settled = "DELETE FROM turns WHERE NOT (" + queued + ") AND seq "
	return s.write("prune the ledger", func(tx *database.Tx) error {
		err := run(tx, settled+"< coalesce((SELECT seq FROM turns WHERE at >= ? ORDER BY seq LIMIT 1), 4611686018427387904)", now.Add(-SeenFor).UnixMilli())
		if err == nil {
			err = run(tx, settled+"<= (SELECT max(seq) FROM turns) - ?", most)
		}
		if err == nil {
			err = s.countKept(tx)
		}
		if err == nil {
			err = run(tx, "DELETE FROM floors WHERE at < ?", now.Add(-SeenFor).UnixMilli())
		}
		if err == nil {
			err = run(tx, "DELETE FROM sessions WHERE at < ?", now.Add(-SeenFor).Unix())
		}
		return err
	})
}
