package ledger

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestRepairedLedgerHasOneName checks that a repaired ledger has exactly one instance name,
// and working counts, even if the damaged file lacks them or has two names.
func TestRepairedLedgerHasOneName(t *testing.T) {
	for name, test := range map[string]struct {
		damage string
		want   string // "" for a new name
	}{
		"as they were":  {"", "first"},
		"no name":       {"DELETE FROM instance", ""},
		"two names":     {"INSERT INTO instance VALUES ('second')", "first"},
		"count missing": {"DELETE FROM totals WHERE name = 'delivered'", "first"},
	} {
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
			if _, err := db.Exec("UPDATE instance SET id = 'first';" + test.damage); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Repair.Run(t.Context(), path, path+".repaired"); err != nil {
				t.Fatal(err)
			}
			l, err = Open(path + ".repaired")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			var names int
			var first string
			if err := l.db.QueryRow(t.Context(), "SELECT count(*), min(id) FROM instance", nil, &names, &first); err != nil {
				t.Fatal(err)
			}
			if names != 1 || first == "" || test.want != "" && first != test.want {
				t.Errorf("%d names, the first is %q, want one, %q", names, first, test.want)
			}
			turn := Turn{ID: "t", User: "said", Targets: []graphiti.Target{{Group: "g", Scope: graphiti.ScopeUser}}}
			if _, err := l.Add(t.Context(), []Turn{turn}, time.Now()); err != nil {
				t.Fatal(err)
			}
			list, err := l.Next(t.Context(), "g", 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.MarkDelivered(list, true, time.Now()); err != nil {
				t.Fatal(err)
			}
			if got, err := l.Totals(); err != nil || got != (Totals{Delivered: 1, Verified: 1}) {
				t.Errorf("got %+v, %v, want no error, one delivered and verified", got, err)
			}
		})
	}
}
