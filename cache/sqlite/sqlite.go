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
)

// Sync says what a commit survives.
type Sync string

// The levels of durability.
const (
	SyncNone   Sync = "OFF"    // nothing
	SyncNormal Sync = "NORMAL" // the end of the process, kill -9 included
	SyncFull   Sync = "FULL"   // a crash of the machine too
)

// ErrClosed says that the file was closed.
var ErrClosed = errors.New("the database is closed")

// Options configures a DB.
type Options struct {
	Schema  string // what makes a new file
	Version int    // of the schema, from 1 on; it is raised when the schema changes
	Sync    Sync
	Holds   string // what is lost with the file, for people
}

const (
	maxBatch   = 512  // writes in one commit
	maxWaiting = 4096 // writes in the queue; the next Write waits until there is room

	// linger is how long a write that is in no hurry waits for others to share
	// its commit.
	linger = 50 * time.Millisecond

	// enough is how many writes in no hurry are committed without waiting for
	// more.
	enough = 8

	// patience is how long a call waits while another program uses the file, and
	// openPatience how long Open does.
	patience     = 5 * time.Second
	openPatience = time.Second

	readers = 3 // connections that read; one of them may be folding the log

	// writerCache is how many KiB of pages the writer holds in RAM at most. A
	// transaction that changes more writes some pages twice.
	writerCache = "8192"

	// restAfter is how long a connection is idle until the RAM of its pages is
	// given back. It is longer than the interval of the checks of an idle file.
	restAfter = 90 * time.Second

	// readerCache is how many KiB of pages a reader holds in RAM at most. It
	// reads them again after each commit, so that more would seldom help.
	readerCache = "512"

	// logMost is the size, in bytes, from which the log is folded into the file.
	logMost = 8 << 20
)

// DB is an open file. It is safe for concurrent use.
type DB struct {
	path    string
	holds   string
	write   *sql.DB // one connection, used by the writer alone
	read    *sql.DB
	stmts   sync.Map // of *sql.Stmt on read, by query
	files   []opened // not changed after Open, as is the version
	version int
	fault   atomic.Pointer[Fault]

	queue  chan *job
	mu     sync.RWMutex // guards closed against sends on queue
	closed bool
	done   chan struct{}

	committing sync.Mutex    // held during a commit, and during the end of a fold
	full       chan struct{} // the log is longer than logMost; one slot is enough
	folded     chan struct{} // closed when foldLog has ended
}

type job struct {
	ctx      context.Context // of the caller
	fn       func(*Tx) error
	reply    chan error
	patience time.Duration // how long it waits for others to share its commit; 0: not at all
}

// Open opens the file at path, and creates it if there is none. It leaves a file
// of another version, a damaged one, and one that is no database as they are. If
// another program keeps it from being written, it fails soon. Its error is a Fault.
func Open(path string, o Options) (*DB, error) {
	d, err := connect(path, o)
	var known *Fault
	switch kind := kindOf(err); {
	case err == nil || errors.As(err, &known):
		return d, err
	case kind == "":
		return nil, newFault(path, Denied, err, o.Holds)
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
	d := &DB{path: path, holds: o.Holds, version: o.Version, queue: make(chan *job, maxWaiting), done: make(chan struct{}),
		full: make(chan struct{}, 1), folded: make(chan struct{})}
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
	// Both end when Close closes the queue.
	go d.run()
	go d.foldLog()
	return d, nil
}

func dsn(path string, s Sync, readOnly bool) string {
	q := url.Values{}
	if readOnly {
		q.Add("_pragma", busyTimeout(patience))
	} else {
		q.Add("_pragma", busyTimeout(openPatience)) // until free raises it
	}
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous("+string(s)+")")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", "foreign_keys(ON)")
	q.Add("_pragma", "secure_delete(ON)")
	q.Add("_pragma", "wal_autocheckpoint(0)") // foldLog does it
	q.Add("_pragma", "journal_size_limit(0)") // the log is as long as it is in use
	if readOnly {
		q.Add("mode", "rw") // a connection that is opened later creates no file
		q.Add("_pragma", "query_only(ON)")
		q.Add("_pragma", "cache_size(-"+readerCache+")")
	} else {
		q.Add("_pragma", "cache_size(-"+writerCache+")")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
}

func busyTimeout(d time.Duration) string { return fmt.Sprintf("busy_timeout(%d)", d.Milliseconds()) }

// free returns an error if another program keeps the file from being written, and has
// the connection wait longer from then on. It leaves other faults to the first write.
func free(db *sql.DB, path string) error {
	if _, err := db.Exec("BEGIN IMMEDIATE"); kindOf(err) == Busy {
		return fmt.Errorf("write to %s: %w", path, err)
	} else if err == nil {
		if _, err := db.Exec("ROLLBACK"); err != nil {
			return fmt.Errorf("write to %s: %w", path, err)
		}
	}
	if _, err := db.Exec("PRAGMA " + busyTimeout(patience)); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return nil
}

// create makes the tables of a file that has none.
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

// Each reads what is committed: it calls f for each row of a query, until f returns an
// error. It prepares each query once and keeps the statement, so that there must be few
// different ones: constants, or strings with a bounded number of forms.
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

// QueryRow reads at most one row into dest, and returns sql.ErrNoRows when
// there is none.
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

// Write runs fn within a transaction and returns when that is committed. Writes
// that wait at the same time share a commit; an error of fn undoes fn alone, and
// an error of the commit undoes them all. If ctx ends before fn has begun, fn is
// not run. If it ends later, Write returns an error, and fn may take effect all the
// same.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.enqueue(&job{ctx: ctx, fn: fn, reply: make(chan error, 1)})
}

func (d *DB) enqueue(j *job) error {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return ErrClosed
	}
	select {
	case d.queue <- j:
		d.mu.RUnlock()
	case <-j.ctx.Done():
		d.mu.RUnlock()
		return fmt.Errorf("write to %s: %w", filepath.Base(d.path), j.ctx.Err())
	}
	select {
	case err := <-j.reply:
		if err != nil {
			return fmt.Errorf("write to %s: %w", filepath.Base(d.path), err)
		}
		return nil
	case <-j.ctx.Done():
		return fmt.Errorf("write to %s: %w", filepath.Base(d.path), j.ctx.Err())
	}
}

// WriteAsync is Write without waiting for the commit, for what may be lost: it waits up
// to linger for others to share a commit, and drops fn when the queue is full. Nobody
// learns of an error. fn is committed no later than a Write that is called after it.
func (d *DB) WriteAsync(fn func(*Tx) error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return
	}
	select {
	case d.queue <- &job{ctx: context.Background(), fn: fn, reply: make(chan error, 1), patience: linger}:
	default:
	}
}

// Close commits the writes that wait and closes the file. It may be called more
// than once.
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
	<-d.folded
	return errors.Join(d.read.Close(), d.write.Close())
}
