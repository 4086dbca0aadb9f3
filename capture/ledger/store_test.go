package ledger

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// repair restores the rows of counts, as the repair of a memory does.
var repair = sqlite.Salvage{After: []string{"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)"}}

// TestRepairedLedgerCounts checks that a repaired ledger has working counts, even if the damaged
// file lacks them.
func TestRepairedLedgerCounts(t *testing.T) {
	for name, damage := range map[string]string{"as they were": "", "count missing": "DELETE FROM totals WHERE name = 'delivered'"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spool.db")
			l, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(damage); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := repair.Run(t.Context(), path, path+".repaired"); err != nil {
				t.Fatal(err)
			}
			l, err = Open(path + ".repaired")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			turn := Turn{ID: "t", User: "said", Targets: []graphiti.Target{{Group: "g", Scope: graphiti.ScopeUser}}}
			if _, err := l.Add(t.Context(), []Turn{turn}, time.Now()); err != nil {
				t.Fatal(err)
			}
			list, err := l.Next(t.Context(), "g", 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.MarkDelivered(&list[0], true); err != nil {
				t.Fatal(err)
			}
			if got, err := l.Totals(); err != nil || got != (Totals{Delivered: 1, Verified: 1}) {
				t.Errorf("got %+v, %v, want no error, one delivered and verified", got, err)
			}
		})
	}
}
