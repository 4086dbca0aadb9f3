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
func Copy(ctx context.Context, from, to []string) error {
	conns := make([]*sql.Conn, 2*len(from)) // the ones that lock, then the ones that read
	for i := range conns {
		db, err := sql.Open("sqlite", dsn(from[i%len(from)], SyncNormal, true))
		if err == nil {
			defer db.Close()
			conns[i], err = db.Conn(ctx)
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", from[i%len(from)], err)
		}
		defer conns[i].Close()
	}
	// No transaction writes while the read transactions begin, so they all read the same moment.
	locks, reads := conns[:len(from)], conns[len(from):]
	for _, each := range []struct {
		conns []*sql.Conn
		query string
	}{
		{locks, "PRAGMA query_only(OFF); BEGIN IMMEDIATE"},
		{reads, "BEGIN; SELECT count(*) FROM sqlite_schema"},
		{locks, "ROLLBACK"},
	} {
		for i, c := range each.conns {
			if _, err := c.ExecContext(ctx, each.query); err != nil {
				return fmt.Errorf("read %s: %w", from[i], err)
			}
		}
	}
	for i, c := range reads {
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
