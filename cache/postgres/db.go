package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// DB is the database of a Server with one kind of commit. It implements database.DB.
type DB struct {
	*Server
	begin string // the first statement of a transaction
	alone string // that of one without others
	queue chan job
}

type job struct {
	fn   func(*database.Tx) error
	done func()
}

const (
	mostQueued   = 4096 // writes that wait in WriteAsync
	mostTogether = 256  // of these in one transaction
	attempts     = 3    // of a transaction that others undo
)

// lock is the key of the lock that each write shares.
const lock = "(26480, 1)"

// opening begins the first statement of a transaction, which takes the lock. A process that hangs
// must not hold the locks of its transaction for longer than another one waits for them.
const opening = "SELECT set_config('idle_in_transaction_session_timeout', '2500', true), set_config('lock_timeout', '4000', true)"

// DB returns the database. If lazy is true, commits do not wait for the disk: a crash of the
// server's machine may lose the last ones.
func (s *Server) DB(lazy bool) *DB {
	begin := opening
	if lazy {
		begin += ", set_config('synchronous_commit', 'off', true)"
	}
	d := &DB{Server: s, queue: make(chan job, mostQueued)}
	d.begin, d.alone = begin+", pg_advisory_xact_lock_shared"+lock, begin+", pg_advisory_xact_lock"+lock
	s.parts.Go(d.run) // ends with the Server
	return d
}

// Shared implements database.DB.
func (d *DB) Shared() bool { return true }

// Close implements database.DB. The Server closes the connections.
func (d *DB) Close() error { return nil }

// Each implements database.Reader.
func (d *DB) Each(ctx context.Context, query string, args []any, f func(scan func(dest ...any) error) error) error {
	return d.do(ctx, func(ctx context.Context) error {
		rows, err := d.sql.QueryContext(ctx, d.translate(query), storable(args)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for scan := rows.Scan; rows.Next(); {
			if err := f(scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// QueryRow implements database.Reader.
func (d *DB) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return d.do(ctx, func(ctx context.Context) error {
		return d.sql.QueryRowContext(ctx, d.translate(query), storable(args)...).Scan(dest...)
	})
}

// Write implements database.Writer.
func (d *DB) Write(ctx context.Context, fn func(*database.Tx) error) error {
	return d.write(ctx, d.begin, fn)
}

// Alone implements database.Writer.
func (d *DB) Alone(ctx context.Context, fn func(*database.Tx) error) error {
	return d.write(ctx, d.alone, fn)
}

func (d *DB) write(ctx context.Context, begin string, fn func(*database.Tx) error) (err error) {
	for range attempts {
		err = d.do(ctx, func(ctx context.Context) error { return d.once(ctx, begin, fn) })
		if !undone(err) {
			break
		}
	}
	if undone(err) {
		err = faultOf(err) // it may succeed later
	}
	if err != nil {
		return fmt.Errorf("write to Postgres: %w", err)
	}
	return nil
}

// rollbackWithin bounds the end of a failed transaction. Without an answer the connection is
// closed, which ends it too.
const rollbackWithin = 200 * time.Millisecond

func (d *DB) once(ctx context.Context, begin string, fn func(*database.Tx) error) error {
	conn, err := d.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &statements{ctx: ctx, conn: conn, dialect: d.dialect}
	_, _ = s.Later("BEGIN"), s.Later(begin) // never fail
	tx := &database.Tx{Statements: s}
	if err = run(fn, tx); err == nil {
		_, err = s.Exec("COMMIT")
		if err == nil && s.tag != "COMMIT" { // a failed statement was ignored
			err = errors.New("the transaction was rolled back")
		}
	}
	if s.failed != nil { // the cause of err
		err = s.failed
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
		defer cancel()
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
		return err
	}
	for _, f := range tx.Waiting() {
		f()
	}
	return nil
}

// run calls fn, and turns a panic into an error: it must not leave a transaction open.
func run(fn func(*database.Tx) error, tx *database.Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v", r)
		}
	}()
	return fn(tx)
}

// statements runs the statements of one transaction.
type statements struct {
	ctx  context.Context
	conn *sql.Conn
	*dialect
	waiting pgx.Batch // statements of Later
	failed  error
	tag     string // answer to the last one
}

// Later makes a statement share the round trip of the next one.
func (s *statements) Later(query string, args ...any) error {
	s.waiting.Queue(s.translate(query), storable(args)...)
	return nil
}

func (s *statements) Exec(query string, args ...any) (sql.Result, error) {
	_ = s.Later(query, args...)
	n, err := s.send()
	return driver.RowsAffected(n), err
}

// send runs the waiting statements in one round trip, and returns the number of rows that the last
// one changed. A failed transaction stays failed.
func (s *statements) send() (rows int64, err error) {
	b := s.waiting
	if s.failed != nil || b.Len() == 0 {
		return 0, s.failed
	}
	s.waiting = pgx.Batch{}
	s.failed = s.conn.Raw(func(c any) (err error) {
		answers := c.(*stdlib.Conn).Conn().SendBatch(s.ctx, &b) //nolint:forcetypeassert // of our driver
		defer func() { err = errors.Join(err, answers.Close()) }()
		for range b.Len() {
			tag, err := answers.Exec()
			if err != nil {
				return err
			}
			rows, s.tag = tag.RowsAffected(), tag.String()
		}
		return nil
	})
	return rows, s.failed
}

func (s *statements) Query(query string, args ...any) (*sql.Rows, error) {
	if _, err := s.send(); err != nil {
		return nil, err
	}
	return s.conn.QueryContext(s.ctx, s.translate(query), storable(args)...)
}

func (s *statements) QueryRow(query string, args ...any) *sql.Row {
	ctx := s.ctx
	if _, err := s.send(); err != nil { // a row returns an error from its query only
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		ctx = canceled
	}
	return s.conn.QueryRowContext(ctx, s.translate(query), storable(args)...)
}

// Call is a statement with its arguments.
type Call struct {
	Query string
	Args  []any
}

// Together runs statements of Postgres as one transaction with the lock of a write, in one round
// trip. Each statement reads all commits before it. f is called for each row of the last one.
func (d *DB) Together(ctx context.Context, calls []Call, f func(scan func(dest ...any) error) error) error {
	return d.do(ctx, func(ctx context.Context) (err error) {
		var b pgx.Batch
		b.Queue(d.begin)
		for _, c := range calls {
			b.Queue(d.translate(c.Query), storable(c.Args)...)
		}
		answers := d.pool.SendBatch(ctx, &b)
		defer func() { err = errors.Join(err, answers.Close()) }() // which also reports a failed commit
		for range calls {
			if _, err := answers.Exec(); err != nil {
				return err
			}
		}
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := f(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// WriteAsync implements database.Writer. During an outage writes are lost.
func (d *DB) WriteAsync(fn func(*database.Tx) error, done func()) (queued bool) {
	if d.base.Err() != nil {
		return false
	}
	select {
	case d.queue <- job{fn, done}:
		return true
	default:
		return false
	}
}

// run makes the writes of WriteAsync. Writes that wait share a transaction.
func (d *DB) run() {
	for {
		var jobs []job
		select {
		case j := <-d.queue:
			jobs = append(jobs, j)
		case <-d.base.Done():
			return
		}
		for more := true; more && len(jobs) < mostTogether; {
			select {
			case j := <-d.queue:
				jobs = append(jobs, j)
			default:
				more = false
			}
		}
		d.together(jobs)
	}
}

func (d *DB) together(jobs []job) {
	all := func(tx *database.Tx) error {
		for _, j := range jobs {
			if err := j.fn(tx); err != nil {
				return err
			}
		}
		return nil
	}
	err := d.Write(d.base, all)
	for _, j := range jobs {
		if err != nil && len(jobs) > 1 && d.Fault() == nil { // one of them must not undo the others
			_ = d.Write(d.base, j.fn)
		}
		j.done()
	}
	var f *database.Fault
	if err != nil && !errors.As(err, &f) && d.base.Err() == nil {
		d.log.Warn("write to Postgres failed", "error", err)
	}
}
