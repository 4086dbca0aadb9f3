package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Salvage copies the readable rows of a damaged file to a new file.
type Salvage struct {
	Skip  []string // tables that stay empty in the new file
	After []string // statements that make the new file consistent
}

// Saved is the result of Salvage for one table.
type Saved struct {
	Table string `json:"table"`
	Rows  int    `json:"rows"`
	Lost  bool   `json:"lost"` // some or all rows could not be read or stored
}

// maxGaps bounds the number of damaged ranges to skip in one table.
const maxGaps = 10_000

// Run copies the readable rows of the file from to the file to, which must not exist. It
// works on a copy of from, so from does not change.
func (s Salvage) Run(ctx context.Context, from, to string) (saved []Saved, err error) {
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("%s is there already; move it away first", to)
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), "repair-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	damaged, fresh := filepath.Join(dir, "damaged.db"), filepath.Join(dir, "new.db")
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(from+end, damaged+end); err != nil && (end == "" || !errors.Is(err, os.ErrNotExist)) {
			return nil, fmt.Errorf("copy %s: %w", from+end, err)
		}
	}
	if saved, err = s.copy(ctx, damaged, fresh); err != nil {
		return nil, fmt.Errorf("nothing can be read of %s: %w", from, err)
	}
	return saved, os.Rename(fresh, to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from) // #nosec G304 -- one of the proxy's own
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- one of the proxy's own
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// single opens a file over one connection.
func single(path string, pragmas ...string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: url.Values{"_pragma": pragmas}.Encode()}).String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func (s Salvage) copy(ctx context.Context, from, to string) (saved []Saved, err error) {
	in, err := single(from, "query_only(ON)")
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := single(to, "synchronous(FULL)", "secure_delete(ON)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if f, err := os.OpenFile(to, os.O_CREATE|os.O_RDWR, 0o600); err != nil { // #nosec G304 -- ours
		return nil, err
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	tables, rest, err := schemaOf(ctx, in)
	if err != nil {
		return nil, err
	}
	var version int
	if err := in.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return nil, err
	}
	tx, err := out.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	for _, t := range tables {
		if _, err := tx.ExecContext(ctx, t.create); err != nil {
			return nil, err
		}
	}
	for _, t := range tables {
		if slices.Contains(s.Skip, t.name) {
			continue
		}
		one, err := t.copyRows(ctx, in, tx)
		if err != nil {
			return nil, err
		}
		saved = append(saved, one)
	}
	statements := append(append(rest, s.After...), fmt.Sprintf("PRAGMA user_version = %d", version))
	for _, q := range statements {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return nil, err
		}
	}
	return saved, tx.Commit()
}

// table is a table of a damaged file.
type table struct {
	name   string
	create string
	key    []string // columns of the primary key, if the table has no rowid
}

// schemaOf returns the tables of a file, and the statements to run after their rows are
// copied: those of indexes and triggers.
func schemaOf(ctx context.Context, db *sql.DB) (tables []table, rest []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, name, create string
		if err := rows.Scan(&kind, &name, &create); err != nil {
			return nil, nil, err
		}
		if kind != "table" {
			rest = append(rest, create)
			continue
		}
		tables = append(tables, table{name: name, create: create})
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	for i := range tables {
		if tables[i].key, err = keyOf(ctx, db, tables[i].name); err != nil {
			return nil, nil, err
		}
	}
	if len(tables) == 0 {
		return nil, nil, errors.New("it holds no table")
	}
	return tables, rest, nil
}

// keyOf returns the columns of the primary key of a table without a rowid.
func keyOf(ctx context.Context, db *sql.DB, table string) (key []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT i.name FROM pragma_table_list(?1) l, pragma_table_info(?1) i WHERE l.wr AND i.pk > 0 ORDER BY i.pk", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		key = append(key, fmt.Sprintf("%q", name))
	}
	return key, rows.Err()
}

// copyRows copies the rows of a table. It skips rows that it cannot read by their rowid. It
// reads a damaged table without rowids from its start and then from its end.
func (t table) copyRows(ctx context.Context, in *sql.DB, tx *sql.Tx) (Saved, error) {
	c := copier{ctx: ctx, in: in, tx: tx, saved: Saved{Table: t.name}}
	if len(t.key) > 0 {
		forward := fmt.Sprintf("SELECT * FROM %q NOT INDEXED ORDER BY %s", t.name, strings.Join(t.key, ", "))
		if damage := c.read(forward, false); damage != nil {
			c.saved.Lost = true
			_ = c.read(fmt.Sprintf("SELECT * FROM %q NOT INDEXED ORDER BY %s DESC", t.name, strings.Join(t.key, " DESC, ")), false) // up to the damage
		}
		return c.saved, c.failed
	}
	behind := fmt.Sprintf("FROM %q NOT INDEXED WHERE rowid > ?1 ORDER BY rowid", t.name)
	c.last = math.MinInt64
	for range maxGaps {
		damage := c.read("SELECT rowid, * "+behind, true, c.last)
		if damage == nil || c.failed != nil {
			break
		}
		c.saved.Lost = true
		if !c.skip("SELECT rowid " + behind + " LIMIT 1") {
			break
		}
	}
	return c.saved, c.failed
}

// copier copies the rows of one table.
type copier struct {
	ctx    context.Context
	in     *sql.DB
	tx     *sql.Tx
	insert *sql.Stmt
	last   int64 // rowid of the last row that was read
	saved  Saved
	failed error // error of a write to the new file
}

// read copies the rows of a query up to the first error, and returns that. If numbered is
// true, the first column is the rowid, which is not copied.
func (c *copier) read(query string, numbered bool, args ...any) error {
	rows, err := c.in.QueryContext(c.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := values
		if numbered {
			c.last, _ = values[0].(int64)
			row = values[1:]
		}
		if c.write(row); c.failed != nil {
			return c.failed
		}
	}
	return rows.Err()
}

// write stores a row in the new file. A row that violates a constraint counts as lost.
func (c *copier) write(row []any) {
	if c.insert == nil {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(row)), ", ")
		if c.insert, c.failed = c.tx.PrepareContext(c.ctx, fmt.Sprintf("INSERT OR IGNORE INTO %q VALUES (%s)", c.saved.Table, marks)); c.failed != nil {
			return
		}
	}
	r, err := c.insert.ExecContext(c.ctx, row...)
	switch {
	case err != nil && strings.Contains(err.Error(), "constraint"):
		c.saved.Lost = true
	case err != nil:
		c.failed = err
	default:
		if n, err := r.RowsAffected(); err == nil {
			c.saved.Rows += int(n)
		}
	}
}

// skip advances last to a rowid after which the next row can be read, and reports whether
// there is one.
func (c *copier) skip(probe string) bool {
	reads := func(n int64) (ok, end bool) {
		var found int64
		err := c.in.QueryRowContext(c.ctx, probe, n).Scan(&found)
		return err == nil, errors.Is(err, sql.ErrNoRows)
	}
	if c.last == math.MinInt64 {
		c.last = -1
	}
	bad, good := c.last, c.last
	for step := int64(1); ; step *= 2 {
		if good > math.MaxInt64-step || step <= 0 {
			return false
		}
		good += step
		ok, end := reads(good)
		if end {
			return false
		}
		if ok {
			break
		}
		bad = good
	}
	for good-bad > 1 {
		middle := bad + (good-bad)/2
		if ok, _ := reads(middle); ok {
			good = middle
		} else {
			bad = middle
		}
	}
	c.last = good
	return true
}
