package cache

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// maxLookup is the most keys in one query.
const maxLookup = 500

// table creates the table of a kind. In a table for all kinds, the records of a request
// would be far apart, each on its own page.
const table = `CREATE TABLE %s (
	list   TEXT NOT NULL,    -- for kinds that have several lists
	key    BLOB NOT NULL,
	born   INTEGER NOT NULL, -- Unix microseconds; before value, so that sweeps need not read it
	value  BLOB NOT NULL,
	scopes TEXT NOT NULL,    -- those whose forgetting ends it, each between commas
	PRIMARY KEY (list, key)
) %s;
`

func schema() string {
	var b strings.Builder
	for _, k := range kinds {
		// A table WITHOUT ROWID stores a list in one place, but writes of long values
		// take twice as long.
		form := "STRICT, WITHOUT ROWID"
		if k.long {
			form = "STRICT"
		}
		fmt.Fprintf(&b, table, k.name, form)
	}
	return b.String()
}

// tables is the store: a database of this process, or a Postgres that replicas share.
type tables struct {
	db         database.DB
	shared     *postgres.DB // db, or nil for a file
	ttl        time.Duration
	newest     int64 // upper bound of all generations of scopes in a file; only writes use it
	unwritten  unwritten
	stop, done chan struct{}
	cancel     context.CancelFunc
}

func openFile(path string, ttl time.Duration) (*tables, error) {
	// Requests do not wait for the disk. A commit survives the end of the process; a
	// crash of the machine may lose the last commits, and with them the newest blocks of
	// those conversations.
	db, err := sqlite.Open(path, sqlite.Options{Schema: schema(), Version: 7, Sync: sqlite.SyncNormal,
		Holds: "the blocks and sessions of running conversations, unfinished deletions, and the memories of registered people's keys and identities"})
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	var newest int64
	err = db.QueryRow(context.Background(), "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM "+floorKind.name, nil, &newest)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open state: %w", err), db.Close())
	}
	f := newTables(db, ttl)
	f.newest = newest
	return f, nil
}

func newTables(db database.DB, ttl time.Duration) *tables {
	ctx, cancel := context.WithCancel(context.Background())
	f := &tables{db: db, ttl: ttl, stop: make(chan struct{}), done: make(chan struct{}), cancel: cancel, unwritten: unwritten{n: make(map[string]int)}}
	// Ends in close.
	go f.sweepLoop(ctx)
	return f
}

func (f *tables) close() error {
	f.cancel()
	close(f.stop)
	<-f.done
	return f.db.Close()
}

// get calls found for each key with a record. It does not search named lists. Values are valid
// until found returns, as those of all reads.
func (f *tables) get(ctx context.Context, k *kind, keys [][]byte, found func(int, []byte) error) error {
	if f.unwritten.has(k, keys) {
		f.flush(ctx)
	}
	at := make(map[string]int, len(keys))
	for i, key := range keys {
		at[string(key)] = i
	}
	for some := range slices.Chunk(keys, maxLookup) {
		among, args := "= ANY (?)", []any{some}
		if f.shared == nil {
			among, args = "IN (?"+strings.Repeat(",?", len(some)-1)+")", make([]any, len(some))
			for i, key := range some {
				args[i] = key
			}
		}
		err := f.each(ctx, "SELECT list, key, value FROM "+k.name+" WHERE list = '' AND key "+among, args,
			func(_ string, key, value []byte) error { return found(at[string(key)], value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls do for each row of a query for list, key and value.
func (f *tables) each(ctx context.Context, query string, args []any, do func(list string, key, value []byte) error) error {
	var list string
	var key, value sql.RawBytes
	return f.db.Each(ctx, query, args, func(scan func(...any) error) error {
		if err := scan(&list, &key, &value); err != nil {
			return err
		}
		return do(list, key, value)
	})
}

// list calls do for the records of lists, oldest first in each.
func (f *tables) list(ctx context.Context, k *kind, lists []string, do func(string, []byte, []byte) error) error {
	if len(lists) == 0 {
		return nil
	}
	args := make([]any, len(lists))
	for i, list := range lists {
		args[i] = list
	}
	return f.each(ctx, "SELECT list, key, value FROM "+k.name+" WHERE list IN (?"+strings.Repeat(",?", len(args)-1)+") ORDER BY list, born, key", args, do)
}

// remove removes the records of lists that match, unless another write changes them meanwhile.
func (f *tables) remove(ctx context.Context, k *kind, lists []string, matches func(key, value []byte) bool) error {
	var gone []*record
	err := f.list(ctx, k, lists, func(list string, key, value []byte) error {
		if matches(key, value) {
			gone = append(gone, &record{kind: k, list: list, key: bytes.Clone(key), was: bytes.Clone(value)})
		}
		return nil
	})
	if err == nil && len(gone) > 0 {
		err = f.write(ctx, gone...)
	}
	return err
}

// scoped calls do for the records with all of the scopes, in key order.
func (f *tables) scoped(ctx context.Context, k *kind, scopes []string, do func(key, value []byte) error) error {
	f.flush(ctx)
	var args []any
	for _, scope := range scopes {
		args = append(args, listed(scope))
	}
	return f.each(ctx, "SELECT list, key, value FROM "+k.name+" WHERE true"+strings.Repeat(" AND instr(scopes, ?) > 0", len(scopes))+" ORDER BY key", args,
		func(_ string, key, value []byte) error { return do(key, value) })
}

// latest calls do for the most newest records with a scope, newest first.
func (f *tables) latest(ctx context.Context, k *kind, scope string, most int, do func(key, value []byte, born time.Time) error) error {
	var key, value sql.RawBytes
	var born int64
	query := fmt.Sprintf("SELECT key, value, born FROM %[1]s WHERE list = '' AND key IN (SELECT key FROM %[1]s WHERE instr(scopes, ?) > 0 ORDER BY born DESC LIMIT ?) ORDER BY born DESC", k.name)
	return f.db.Each(ctx, query, []any{listed(scope), most}, func(scan func(...any) error) error {
		if err := scan(&key, &value, &born); err != nil {
			return err
		}
		return do(key, value, time.UnixMicro(born))
	})
}

// keep stores a record unless its key already has one, and returns the key's value. It does not
// store the record after ctx is done.
func (f *tables) keep(ctx context.Context, r *record) ([]byte, error) {
	if f.shared != nil {
		return f.keepShared(ctx, r)
	}
	var kept []byte
	err := f.db.Write(ctx, func(tx *database.Tx) (err error) {
		if err := ctx.Err(); err != nil {
			return err // the caller has given up: its request has no block
		}
		kept, err = f.put(tx, r)
		return err
	})
	if err != nil {
		return nil, err // the transaction may still be setting kept
	}
	return kept, nil
}

// write stores all records or none.
func (f *tables) write(ctx context.Context, records ...*record) error {
	err := f.db.Write(ctx, func(tx *database.Tx) error { return f.putAll(tx, records) })
	if err == nil && f.shared != nil && slices.ContainsFunc(records, func(r *record) bool { return r.kind == forgetKind }) {
		err = f.shared.Notify(ctx)
	}
	return err
}

// writeAsync does not block. Its writes are ordered but may be lost. The file finds them at once.
// queued is false if too many wait.
func (f *tables) writeAsync(records ...*record) (queued bool) {
	f.unwritten.add(records, 1)
	done := func() { f.unwritten.add(records, -1) }
	if queued = f.db.WriteAsync(func(tx *database.Tx) error { return f.putAll(tx, records) }, done); !queued {
		done()
	}
	return queued
}

// flush returns when all earlier writes are committed. They are lost if the disk fails, which
// must not prevent reads.
func (f *tables) flush(ctx context.Context) {
	if f.shared != nil { // other writes do not wait for those of writeAsync
		done := make(chan struct{})
		if f.db.WriteAsync(func(*database.Tx) error { return nil }, func() { close(done) }) {
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
		return
	}
	_ = f.db.Write(ctx, func(*database.Tx) error { return nil })
}

// unwritten counts the records of writeAsync without a commit yet, by kind and key.
type unwritten struct {
	mu sync.Mutex // protects n
	n  map[string]int
}

func (u *unwritten) add(records []*record, by int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range records {
		key := r.kind.name + string(r.key)
		if u.n[key] += by; u.n[key] == 0 {
			delete(u.n, key)
		}
	}
}

func (u *unwritten) has(k *kind, keys [][]byte) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.n) > 0 && slices.ContainsFunc(keys, func(key []byte) bool { return u.n[k.name+string(key)] > 0 })
}

func (f *tables) putAll(tx *database.Tx, records []*record) error {
	for _, r := range records {
		if _, err := f.put(tx, r); err != nil {
			return err
		}
	}
	return nil
}

// put stores or removes a record, and returns the resulting value of its key.
func (f *tables) put(tx *database.Tx, r *record) (value []byte, err error) {
	table, key := r.kind.name, any(r.key)
	if r.value == nil {
		remove, args := "DELETE FROM "+table+" WHERE list = ? AND key = ?", []any{r.list, key}
		if r.was != nil {
			remove, args = remove+" AND value = ?", append(args, r.was)
		}
		_, err := tx.Exec(remove, args...)
		return nil, err
	}
	value, scopes := r.value, listed(r.scopes...)
	if refused, err := f.older(tx, r); err != nil || refused && r.refused == nil {
		return nil, err
	} else if refused {
		value, scopes = r.refused, ""
	}
	over := `UPDATE SET value = excluded.value, born = excluded.born,
		scopes = CASE WHEN instr(t.scopes, excluded.scopes) > 0 THEN t.scopes ELSE t.scopes || excluded.scopes END`
	if r.first {
		over = "NOTHING"
	}
	done, err := tx.Exec("INSERT INTO "+table+" AS t (list, key, value, scopes, born) VALUES (?, ?, ?, ?, ?) ON CONFLICT (list, key) DO "+over,
		r.list, key, value, scopes, time.Now().UnixMicro())
	if err != nil {
		return nil, err
	}
	if n, err := done.RowsAffected(); err != nil {
		return nil, err
	} else if n == 0 { // the key already has a record
		var first []byte
		err := tx.QueryRow("SELECT value FROM "+table+" WHERE list = ? AND key = ?", r.list, key).Scan(&first)
		return first, err
	}
	if r.kind.most > 0 {
		_, err = tx.Exec(beyondMost(r.kind), r.list, r.kind.most)
	}
	return value, err
}

// beyondMost returns the statement that removes the oldest records of a list.
func beyondMost(k *kind) string {
	return "DELETE FROM " + k.name + " WHERE list = ?1 AND key IN (SELECT key FROM " + k.name + " WHERE list = ?1 ORDER BY born DESC LIMIT -1 OFFSET ?2)"
}
