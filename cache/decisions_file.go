package cache

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// decisionFile keeps decisions in the file of one process.
type decisionFile struct {
	db      *sqlite.DB
	decided *decidedKeys
}

func (f decisionFile) shared() bool { return false }

// in returns the list of an SQL IN for the keys, and its arguments.
func in(keys [][16]byte) (string, []any) {
	args := make([]any, len(keys))
	for i := range keys {
		args[i] = keys[i][:]
	}
	return "(?" + strings.Repeat(",?", len(args)-1) + ")", args
}

func (f decisionFile) read(ctx context.Context, keys [][16]byte, found func(int, *inject.Decision)) error {
	known := make([][16]byte, 0, len(keys))
	for _, k := range keys {
		if f.decided.May(k) {
			known = append(known, k)
		}
	}
	if len(known) == 0 {
		return nil
	}
	at := positions(keys)
	rest, args := in(known)
	rows, err := f.db.Query(ctx, "SELECT key, block, facts, reason, ingest, generation FROM decisions WHERE key IN "+rest, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		d := &inject.Decision{}
		if err := rows.Scan(&key, &d.Block, &d.Facts, &d.Reason, &d.Ingest, &d.Generation); err != nil {
			return err
		}
		found(at[[16]byte(key)], d)
	}
	return rows.Err()
}

func (f decisionFile) keep(ctx context.Context, key [16]byte, d inject.Decision, groups, scopes []string) (*inject.Decision, error) {
	kept := &inject.Decision{}
	f.decided.Add(key)
	err := f.db.Write(ctx, func(tx *sqlite.Tx) error {
		if err := ctx.Err(); err != nil {
			return err // nobody waits for it: the request left without a block
		}
		err := tx.QueryRow("SELECT block, facts, reason, ingest, generation FROM decisions WHERE key = ?", key[:]).
			Scan(&kept.Block, &kept.Facts, &kept.Reason, &kept.Ingest, &kept.Generation)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		*kept = d
		if refused, err := older(tx, d.Generation, scopes); err != nil {
			return err
		} else if refused {
			*kept, groups = withoutBlock(d), nil
		}
		_, err = tx.Exec("INSERT INTO decisions (key, block, facts, reason, ingest, generation, grps, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			key[:], kept.Block, kept.Facts, kept.Reason, kept.Ingest, kept.Generation, listed(groups), time.Now().Unix())
		return err
	})
	return kept, err
}

// listed writes groups between commas, so that instr finds one of them.
func listed(groups []string) string { return "," + strings.Join(groups, ",") + "," }

func (f decisionFile) empty(ctx context.Context, group string) (n int, err error) {
	err = f.db.Write(ctx, func(tx *sqlite.Tx) error {
		tx.Fold()
		r, err := tx.Exec("UPDATE decisions SET block = '' WHERE block <> '' AND instr(grps, ?) > 0", listed([]string{group}))
		if err != nil {
			return err
		}
		emptied, err := r.RowsAffected()
		n = int(emptied)
		return err
	})
	return n, err
}

func (f decisionFile) countEmptied(ctx context.Context) (n int, err error) {
	return n, f.db.QueryRow(ctx, "SELECT count(*) FROM decisions WHERE block = '' AND facts > 0", nil, &n)
}
