package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// statements runs the statements of the only writer.
type statements struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// Exec runs a statement. It prepares each statement once and stores it, so statements must
// be constants.
func (t *statements) Exec(query string, args ...any) (sql.Result, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Exec(args...)
}

// Later runs a statement at once.
func (t *statements) Later(query string, args ...any) error {
	_, err := t.Exec(query, args...)
	return err
}

// Query runs a query. Its rows must be closed before the next statement.
func (t *statements) Query(query string, args ...any) (*sql.Rows, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}

// QueryRow runs a query that returns at most one row.
func (t *statements) QueryRow(query string, args ...any) *sql.Row {
	s, err := t.prepare(query)
	if err != nil {
		return t.conn.QueryRowContext(context.Background(), query, args...) // reports the same error
	}
	return s.QueryRow(args...)
}

func (t *statements) prepare(query string) (*sql.Stmt, error) {
	if s, ok := t.stmts[query]; ok {
		return s, nil
	}
	s, err := t.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = s
	return s, nil
}

// run is the loop of the only writer.
func (d *DB) run() {
	defer close(d.done)
	s := &statements{stmts: make(map[string]*sql.Stmt)}
	tx := &transaction{database.Tx{Statements: s}}
	conn, err := d.write.Conn(context.Background())
	if err == nil {
		s.conn = conn
		defer s.close()
	}
	batch := make([]*job, 0, maxBatch)
	for j := range d.queue {
		batch = d.gather(append(batch[:0], j))
		if err == nil {
			d.commit(tx, batch)
			continue
		}
		for _, j := range batch {
			j.reply(err)
		}
	}
}

// gather adds the queued jobs to a batch, up to maxBatch.
func (d *DB) gather(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j, open := <-d.queue:
			if !open {
				return batch
			}
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// close closes the statements before the connection: with an open statement, SQLite would
// never close the file and its log.
func (t *statements) close() {
	for _, s := range t.stmts {
		_ = s.Close()
	}
	_ = t.conn.Close()
}

// commit runs the jobs and replies to each. A file that is not in place takes no commit.
func (d *DB) commit(tx *transaction, batch []*job) {
	errs, err := make([]error, len(batch)), d.usable()
	if err == nil {
		err = d.inPlace()
	}
	if err == nil {
		errs, err = tx.commit(batch)
	}
	if err == nil {
		d.written()
		for _, f := range tx.Waiting() {
			f()
		}
	}
	for i, j := range batch {
		if errs[i] == nil {
			errs[i] = err
		}
		if errs[i] != nil {
			_ = d.notice(errs[i])
		}
		j.reply(errs[i])
	}
}

// transaction commits jobs.
type transaction struct{ database.Tx }

// commit runs the jobs in one transaction, each in its own savepoint, so that a failed job
// undoes no other. A single job needs no savepoint.
func (t *transaction) commit(batch []*job) (errs []error, err error) {
	errs = make([]error, len(batch))
	t.Reset()
	err = t.command("BEGIN IMMEDIATE")
	switch {
	case err != nil:
	case len(batch) == 1:
		errs[0] = call(batch[0], &t.Tx)
		err = errs[0]
	default:
		for i := 0; i < len(batch) && err == nil; i++ {
			errs[i], err = t.within(batch[i])
		}
	}
	if err == nil {
		err = t.command("COMMIT")
	}
	if err != nil {
		_ = t.command("ROLLBACK") // SQLite may have rolled back itself
	}
	if err == nil && t.Checkpoints() {
		var busy, frames, moved int
		_ = t.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved) // an error does not undo the commit
	}
	return errs, err
}

// within runs a job in a savepoint. failed is the error of the job, and err that of the
// transaction.
func (t *transaction) within(j *job) (failed, err error) {
	if err := t.command("SAVEPOINT job"); err != nil {
		return nil, err
	}
	before := len(t.Waiting())
	if failed = call(j, &t.Tx); failed != nil {
		t.Undo(before)
		if err := t.command("ROLLBACK TO job"); err != nil {
			return failed, err
		}
	}
	return failed, t.command("RELEASE job")
}

func (t *transaction) command(c string) error {
	_, err := t.Exec(c)
	return err
}

// call runs a job, unless its caller has given up. It recovers from a panic, which must not
// end the writer.
func call(j *job, t *database.Tx) (err error) {
	if err := j.ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a write: %v", r)
		}
	}()
	return j.fn(t)
}
