// Package database is the contract of the two databases of the proxy: a SQLite file of one
// process (cache/sqlite), and a Postgres that replicas share (cache/postgres). Both take the
// same statements. It owns the transaction and the fault.
package database

import (
	"context"
	"database/sql"
	"errors"
)

// ErrClosed is the error of a write to a closed database.
var ErrClosed = errors.New("the database is closed")

// DB is an open database. It is safe for concurrent use. Statements are constants, or strings
// with a bounded number of forms: a database prepares each of them once.
type DB interface {
	Reader
	Writer

	// Shared reports whether other processes write to the database. Then a process must
	// neither remember that a row is missing, nor rely on the order of its own commits.
	Shared() bool

	Fault() *Fault // the known problem of the database, or nil
	Check() *Fault // tests the database and returns its problem, or nil
	Close() error
}

// Led returns an error if other processes share db and this one has lost the lease, which no other
// can take before the end of the transaction.
func Led(db DB, tx *Tx) error {
	if s, ok := db.(interface{ Led(tx *Tx) error }); ok {
		return s.Led(tx)
	}
	return nil
}

// Reader reads committed data.
type Reader interface {
	// Each calls f for each row of a query until f returns an error.
	Each(ctx context.Context, query string, args []any, f func(scan func(dest ...any) error) error) error

	// QueryRow reads the first row of a query into dest, and returns sql.ErrNoRows if there
	// is none.
	QueryRow(ctx context.Context, query string, args []any, dest ...any) error
}

// Writer runs transactions.
type Writer interface {
	// Write runs fn within a transaction and returns after the commit. If it returns an error
	// although ctx has ended, fn may take effect, and may still run: then the caller must not
	// use variables of fn, such as named results. fn may run more than once, so it begins by
	// resetting them.
	Write(ctx context.Context, fn func(*Tx) error) error

	// WriteAsync is Write without waiting for the commit, for data that may be lost. Its
	// writes are ordered. done is called after the commit, or after a failure, and must
	// neither block nor write. If too many wait, it does nothing and returns false.
	WriteAsync(fn func(*Tx) error, done func()) (queued bool)

	// Alone is Write without other writes under way in any process: a write either has committed
	// before, or reads the rows of fn. It delays all writes, so fn must be short.
	Alone(ctx context.Context, fn func(*Tx) error) error
}

// Statements runs the statements of a transaction.
type Statements interface {
	Exec(query string, args ...any) (sql.Result, error)
	Later(query string, args ...any) error              // Exec with the next statement, or the commit: its error may come then
	Query(query string, args ...any) (*sql.Rows, error) // to be closed before the next statement
	QueryRow(query string, args ...any) *sql.Row
}

// Tx is a write transaction. It is valid until the function that received it returns.
type Tx struct {
	Statements
	checkpoint bool
	committed  []func()
}

// Checkpoint makes the commit remove deleted data from a file and its log, too.
func (t *Tx) Checkpoint() { t.checkpoint = true }

// Checkpoints reports whether Checkpoint was called.
func (t *Tx) Checkpoints() bool { return t.checkpoint }

// Committed makes the database call f after the commit and before Write returns, and not at all
// if the write fails. f must neither block nor write. A file calls in the order of the commits.
func (t *Tx) Committed(f func()) { t.committed = append(t.committed, f) }

// Waiting returns the functions passed to Committed.
func (t *Tx) Waiting() []func() { return t.committed }

// Undo drops all but the first n functions passed to Committed.
func (t *Tx) Undo(n int) { t.committed = t.committed[:n] }

// Reset prepares a Tx for the next transaction.
func (t *Tx) Reset() { t.checkpoint, t.committed = false, nil }
