package cache

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// generationFile keeps generations in the file of one process.
type generationFile struct{ db *sqlite.DB }

// newest reads the number. A file that was repaired may have two rows, or none.
const newest = "SELECT coalesce(max(number), 1) FROM generation"

func (f generationFile) read(ctx context.Context) (number int64, under []Forget, err error) {
	if err := f.db.QueryRow(ctx, newest, nil, &number); err != nil {
		return 0, nil, err
	}
	rows, err := f.db.Query(ctx, "SELECT grp, scope, session, owner, generation, emptied FROM forgets ORDER BY generation, grp, scope")
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o Forget
		if err := rows.Scan(&o.Group, &o.Scope, &o.Session, &o.Owner, &o.Generation, &o.Emptied); err != nil {
			return 0, nil, err
		}
		under = append(under, o)
	}
	return number, under, rows.Err()
}

func (f generationFile) raise(ctx context.Context, o Forget, seen int64, scopes []string) (number int64, err error) {
	err = f.db.Write(ctx, func(tx *sqlite.Tx) error {
		if err := tx.QueryRow(newest).Scan(&number); err != nil {
			return err
		}
		number = max(number, seen) + 1
		if _, err := tx.Exec("DELETE FROM generation"); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO generation VALUES (?)", number); err != nil {
			return err
		}
		for _, scope := range scopes {
			if _, err := tx.Exec("INSERT OR REPLACE INTO floors VALUES (?, ?, ?)", scope, number, time.Now().Unix()); err != nil {
				return err
			}
		}
		_, err := tx.Exec("INSERT OR REPLACE INTO forgets (grp, scope, session, owner, generation, emptied) VALUES (?, ?, ?, ?, ?, ?)",
			o.Group, o.Scope, o.Session, o.Owner, number, o.Emptied)
		return err
	})
	if err != nil {
		return 0, err
	}
	return number, nil
}

func (f generationFile) end(ctx context.Context, o Forget) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM forgets WHERE grp = ?1 AND generation <= ?3 AND (scope = ?2 OR ?1 = ?2)", o.Group, o.Scope, o.Generation)
		return err
	})
}

func (f generationFile) floors(ctx context.Context) (map[string]int64, error) {
	rows, err := f.db.Query(ctx, "SELECT scope, generation FROM floors")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	floors := make(map[string]int64)
	for rows.Next() {
		var scope string
		var generation int64
		if err := rows.Scan(&scope, &generation); err != nil {
			return nil, err
		}
		floors[scope] = generation
	}
	return floors, rows.Err()
}

// older reports whether a generation is older than that of one of the scopes: what
// carries it must not be written.
func older(tx *sqlite.Tx, generation int64, scopes []string) (found bool, err error) {
	for _, scope := range scopes {
		err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM floors WHERE scope = ? AND generation > ?)", scope, generation).Scan(&found)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}
