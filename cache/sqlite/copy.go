package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// Copy writes databases, which this or another process may use, to new files, as they are at one
// moment. The new files must be missing or empty.
func Copy(ctx context.Context, from, to []string) (err error) {
	conns := make([]*sql.Conn, len(from))
	for i, path := range from {
		db, failed := sql.Open("sqlite", dsn(path, SyncNormal, true))
		if failed != nil {
			return fmt.Errorf("open %s: %w", path, failed)
		}
		defer db.Close()
		if conns[i], failed = db.Conn(ctx); failed != nil {
			return fmt.Errorf("open %s: %w", path, failed)
		}
		defer conns[i].Close()
	}
	for i, c := range conns { // a transaction reads the file as it is at its first read
		for _, query := range []string{"BEGIN", "SELECT count(*) FROM sqlite_schema"} {
			if _, err := c.ExecContext(ctx, query); err != nil {
				return fmt.Errorf("read %s: %w", from[i], err)
			}
		}
	}
	for i, c := range conns {
		if err := c.Raw(func(conn any) error { return copyTo(ctx, conn, to[i]) }); err != nil {
			return fmt.Errorf("copy %s: %w", from[i], err)
		}
	}
	return nil
}

// copyPages is the number of pages between two looks at the context.
const copyPages = 4096

func copyTo(ctx context.Context, conn any, path string) error {
	b, err := conn.(interface {
		NewBackup(path string) (*sqlite.Backup, error)
	}).NewBackup(path)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if more, err = b.Step(copyPages); err == nil {
			err = ctx.Err()
		}
	}
	return errors.Join(err, b.Finish())
}

// Check reads each page of a database, and returns an error if one is damaged.
func Check(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, SyncNormal, true))
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer db.Close()
	var result string
	err = db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&result)
	tables := 0 // SQLite takes a short file for an empty one
	if err == nil {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables)
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	if tables == 0 {
		result = "it has no tables"
	}
	if result != "ok" {
		return fmt.Errorf("check %s: %s", path, result)
	}
	return nil
}
