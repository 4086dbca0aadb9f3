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
	SyncNormal Sync = "NORMAL" // the end of the process, kill -9 included
	SyncFull   Sync = "FULL"   // the end of the machine too
)

var (
	// ErrClosed says that the file was closed.
	ErrClosed = errors.New("the database is closed")

	// ErrVersion says that the file has another version than this program's.
	ErrVersion = errors.New("written by another version of graphiti-proxy")
)

// Options configures a DB.
type Options struct {
	Schema  string // what makes a new file
	Version int    // of the schema, from 1 on; it is raised when the schema changes
	Sync    Sync
	Holds   string // what is lost with the file, for people
}

const (
	maxBatch   = 512  // writes in one commit
	maxWaiting = 4096 // writes that wait for one; more wait for room

	// linger is how long a write that is in no hurry waits for others to be
	// committed with.
	linger = 50 * time.Millisecond

	// enough writes share a commit well: they do not wait for more.
	enough = 8

	readers = 3 // one of them may be folding the log

	// writerCache is how many KiB of pages the writer holds at most. A
	// transaction that changes more writes pages before its end, and again.
	writerCache = "8192"

	// restAfter is how long nobody uses a connection until the pages that it
	// holds are given back; longer than from one look at a file that nobody
	// uses to the next.
	restAfter = 90 * time.Second

	// readerCache is how many KiB of pages a reader holds at most. Each commit
	// makes it read them again, so that more would seldom help.
	readerCache = "512"

	// logMost is from how many bytes on the log is folded into the file.
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

	committing sync.Mutex    // one commit, or the end of a folding
	full       chan struct{} // the log is long; more than one says nothing new
	folded     chan struct{} // foldLog has ended
}

type job struct {
	ctx      context.Context // of the caller
	fn       func(*Tx) error
	reply    chan error
	patience time.Duration // how long it waits for others; 0: it is in a hurry
}

// Open opens the file, creating it where there is none. A file of another
// version, one that is damaged, or one that is no database, is left as it is;
// the error is then a Fault.
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
	q.Add("_pragma", "busy_timeout(5000)")
	q.Add("_pragma", "journal_mode(WAL)")
	q.Add("_pragma", "synchronous("+string(s)+")")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", "foreign_keys(ON)")
	q.Add("_pragma", "secure_delete(ON)")
	q.Add("_pragma", "wal_autocheckpoint(0)") // foldLog does it
	q.Add("_pragma", "journal_size_limit(0)") // the log is as long as it is in use
	if readOnly {
		q.Add("mode", "rw") // a connection that comes later makes no file
		q.Add("_pragma", "query_only(ON)")
		q.Add("_pragma", "cache_size(-"+readerCache+")")
	} else {
		q.Add("_pragma", "cache_size(-"+writerCache+")")
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
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

// Rows are the rows of a query.
type Rows struct {
	*sql.Rows
	db *DB
}

// Err is what ended the rows before their end.
func (r *Rows) Err() error {
	err := r.Rows.Err()
	r.db.noticeRead(err)
	return err
}

// Query reads what was committed. The query is prepared once and kept, so it
// must be one of a few: a constant, or made of a bounded number of pieces.
func (d *DB) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	s, err := d.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		d.noticeRead(err)
		return nil, err
	}
	return &Rows{rows, d}, nil
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

// Write calls fn within a transaction, and returns when that is committed, or
// has failed as a whole or for fn alone. Writes that come at the same time
// share a commit. When ctx ends first, fn may still be running, and whether it
// takes effect is not known; it is not begun any more.
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

// Later is Write for what may be lost: it does not wait, mostly shares the commit of
// something else, and is left out when too much waits already. It is committed no
// later than a Write that is called after it.
func (d *DB) Later(fn func(*Tx) error) {
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

// Close finishes the waiting writes and closes the file. It may be called
// again.
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
