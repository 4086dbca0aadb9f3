package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Sync is a level of durability: the kind of crash that a commit survives.
type Sync string

// The levels of durability.
const (
	SyncNone   Sync = "OFF"    // nothing
	SyncNormal Sync = "NORMAL" // the end of the process, kill -9 included
	SyncFull   Sync = "FULL"   // a crash of the machine too
)

// Options configures a DB.
type Options struct {
	Schema  string // statements that create a new file
	Version int    // version of the schema, from 1; each change of the schema increments it
	Sync    Sync
	Holds   string // description of the content, for people who may lose it
}

const (
	maxBatch   = 512  // writes in one commit
	maxWaiting = 4096 // writes in the queue; with more, Write waits and WriteAsync drops its write

	// patience is the timeout of a call while another program uses the file.
	patience = 2 * time.Second

	readers = 3 // connections for reads

	// writerCache bounds the pages that the writer holds in RAM, in KiB. A transaction
	// that changes more writes some pages twice.
	writerCache = "2048"

	// restAfter is the idle time after which a reader closes, which releases its pages.
	restAfter = 90 * time.Second

	// readerCache bounds the pages that a reader holds in RAM, in KiB. It reads them again
	// after each commit, so a larger cache would seldom help.
	readerCache = "512"

	// logMost is the size, in pages of 4 KiB, from which a commit moves the log into the file.
	logMost = 2000
)

// DB is an open file. It is safe for concurrent use.
type DB struct {
	path    string
	holds   string
	write   *sql.DB // one connection, used only by the writer
	read    *sql.DB
	stmts   sync.Map // of *sql.Stmt on read, by query
	files   []opened // does not change after Open, nor does version
	version int
	fault   atomic.Pointer[database.Fault]

	queue  chan *job
	mu     sync.RWMutex // guards closed against sends on queue
	closed bool
	done   chan struct{}
}

type job struct {
	ctx   context.Context // of the caller
	fn    func(*database.Tx) error
	reply func(error) // called once; must not block
}

// Open opens the file at path, and creates it if necessary. It does not change a file that
// is damaged, of another version, or not a database. If another program prevents writes, it
// fails within about two seconds. Its error is a Fault.
func Open(path string, o Options) (*DB, error) {
	d, err := connect(path, o)
	var known *database.Fault
	switch kind := kindOf(err); {
	case err == nil || errors.As(err, &known):
		return d, err
	case kind == "":
		return nil, newFault(path, database.Denied, err, o.Holds)
	default:
		return nil, newFault(path, kind, err, o.Holds)
	}
}

func connect(path string, o Options) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of %s: %w", path, err)
	}
	if kind, err := preflight(path, o.Version); err != nil {
		return nil, newFault(path, kind, err, o.Holds)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d := newDB(path, o)
	if d.write, err = sql.Open("sqlite", dsn(path, o.Sync, false)); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d.write.SetMaxOpenConns(1)
	if err = create(d.write, path, o); err == nil {
		err = d.note()
	}
	if err == nil {
		err = free(d.write, path)
	}
	if err != nil {
		d.write.Close()
		return nil, err
	}
	if d.read, err = sql.Open("sqlite", dsn(path, o.Sync, true)); err != nil {
		d.write.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d.read.SetMaxOpenConns(readers)
	d.read.SetMaxIdleConns(readers)
	d.read.SetConnMaxIdleTime(restAfter)
	// Ends when Close closes the queue.
	go d.run()
	return d, nil
}

func newDB(path string, o Options) *DB {
	return &DB{path: path, holds: o.Holds, version: o.Version, queue: make(chan *job, maxWaiting), done: make(chan struct{})}
}

func dsn(path string, s Sync, readOnly bool) string {
	q := url.Values{}
	q.Add("_pragma", busyTimeout)
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous("+string(s)+")")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", "foreign_keys(ON)")
	q.Add("_pragma", "secure_delete(ON)")
	q.Add("_pragma", fmt.Sprintf("wal_autocheckpoint(%d)", logMost))
	q.Add("_pragma", "journal_size_limit(0)") // shrinks the log to the part in use
	if readOnly {
		q.Add("mode", "rw") // a later connection must not create a file
		q.Add("_pragma", "query_only(ON)")
		q.Add("_pragma", "cache_size(-"+readerCache+")")
	} else {
		q.Add("_pragma", "cache_size(-"+writerCache+")")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

var busyTimeout = fmt.Sprintf("busy_timeout(%d)", patience.Milliseconds())

// free returns an error if another program prevents writes to the file. It leaves other faults to
// the first write.
func free(db *sql.DB, path string) error {
	if _, err := db.Exec("BEGIN IMMEDIATE"); kindOf(err) == database.Busy {
		return fmt.Errorf("write to %s: %w", path, err)
	} else if err == nil {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			return fmt.Errorf("write to %s: %w", path, err)
		}
	}
	return nil
}

// create creates the tables of a new file.
func create(db *sql.DB, path string, o Options) error {
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if version == o.Version {
		return nil
	}
	tx, err := db.Begin()
	if err != nil {
		return fmt.Errorf("prepare %s: %w", path, err)
	}
	_, err = tx.Exec(o.Schema + fmt.Sprintf("\n; PRAGMA user_version = %d", o.Version))
	if err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback()
	}
	if err != nil {
		return fmt.Errorf("prepare %s: %w", path, err)
	}
	return nil
}

// Each calls f for each row of a query until f returns an error. It reads committed data
// only. It prepares each query once and stores the statement, so queries must be constants,
// or strings with a bounded number of forms.
func (d *DB) Each(ctx context.Context, query string, args []any, f func(scan func(dest ...any) error) error) error {
	s, err := d.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		d.noticeRead(err)
		return err
	}
	defer rows.Close()
	for scan := rows.Scan; rows.Next(); {
		if err := f(scan); err != nil {
			return err
		}
	}
	err = rows.Err()
	d.noticeRead(err)
	return err
}

// QueryRow reads the first row of a query into dest, and returns sql.ErrNoRows if there is
// none.
func (d *DB) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	s, err := d.prepared(ctx, query)
	if err != nil {
		return err
	}
	err = s.QueryRowContext(ctx, args...).Scan(dest...)
	d.noticeRead(err)
	return err
}

func (d *DB) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	if s, ok := d.stmts.Load(query); ok {
		return s.(*sql.Stmt), nil //nolint:forcetypeassert // the map's only type
	}
	s, err := d.read.PrepareContext(ctx, query)
	if err != nil {
		d.noticeRead(err)
		return nil, err
	}
	if old, loaded := d.stmts.LoadOrStore(query, s); loaded {
		_ = s.Close()
		s = old.(*sql.Stmt) //nolint:forcetypeassert // the map's only type
	}
	return s, nil
}

// Write runs fn within a transaction and returns after the commit. Writes that wait at the
// same time share a commit: an error of fn undoes only fn, and an error of the commit undoes
// all of them. If ctx ends before fn begins, fn does not run. If ctx ends later, Write
// returns an error although fn may take effect, and may still run: then the caller must not
// use variables of fn, such as named results.
func (d *DB) Write(ctx context.Context, fn func(*database.Tx) error) error {
	reply := make(chan error, 1)
	j := &job{ctx: ctx, fn: fn, reply: func(err error) { reply <- err }}
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return database.ErrClosed
	}
	select {
	case d.queue <- j:
		d.mu.RUnlock()
	case <-j.ctx.Done():
		d.mu.RUnlock()
		return fmt.Errorf("write to %s: %w", filepath.Base(d.path), j.ctx.Err())
	}
	select {
	case err := <-reply:
		if err != nil {
			return fmt.Errorf("write to %s: %w", filepath.Base(d.path), err)
		}
		return nil
	case <-j.ctx.Done():
		return fmt.Errorf("write to %s: %w", filepath.Base(d.path), j.ctx.Err())
	}
}

// WriteAsync is Write without waiting for the commit, for data that may be lost. done is
// called after the commit, or after a failure, and must neither block nor write. If the
// queue is full, WriteAsync does nothing and returns false.
func (d *DB) WriteAsync(fn func(*database.Tx) error, done func()) (queued bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	select {
	case d.queue <- &job{ctx: context.Background(), fn: fn, reply: func(error) { done() }}:
		return true
	default:
		return false
	}
}

// Alone is Write: there is one writer, and no other process.
func (d *DB) Alone(ctx context.Context, fn func(*database.Tx) error) error { return d.Write(ctx, fn) }

// Shared implements database.DB: only this process writes to the file.
func (d *DB) Shared() bool { return false }

// Close commits the waiting writes and closes the file. It may be called more than once.
func (d *DB) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		<-d.done
		return nil
	}
	d.closed = true
	close(d.queue)
	d.mu.Unlock()
	<-d.done
	return errors.Join(d.read.Close(), d.write.Close())
}
