package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"
)

// Tx is a write transaction, valid during the call it is given to.
type Tx struct {
	conn      *sql.Conn
	stmts     map[string]*sql.Stmt
	fold      bool
	committed []func()
}

// Fold has the log folded into the file and emptied after the commit, so that
// what was deleted stands in neither. What a reader still looks at then goes
// with the next one, at the latest with Close.
func (t *Tx) Fold() { t.fold = true }

// Committed has f called once what the call writes is committed, before Write
// returns, and in the order of the commits. It is not called when the call
// fails, or the commit. It must neither block nor write.
func (t *Tx) Committed(f func()) { t.committed = append(t.committed, f) }

// Exec runs a statement, which is prepared once and kept: statements must be
// constants.
func (t *Tx) Exec(query string, args ...any) (sql.Result, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Exec(args...)
}

// Query runs a query. Its rows must be closed before the next statement.
func (t *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}

// QueryRow runs a query that yields at most one row.
func (t *Tx) QueryRow(query string, args ...any) *sql.Row {
	s, err := t.prepare(query)
	if err != nil {
		return t.conn.QueryRowContext(context.Background(), query, args...) // reports the same mistake
	}
	return s.QueryRow(args...)
}

func (t *Tx) prepare(query string) (*sql.Stmt, error) {
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

// run is the one writer.
func (d *DB) run() {
	defer close(d.done)
	defer close(d.full)
	tx := &Tx{stmts: make(map[string]*sql.Stmt)}
	conn, err := d.write.Conn(context.Background())
	if err == nil {
		tx.conn = conn
		defer tx.close()
	}
	batch := make([]*job, 0, maxBatch)
	for {
		j, open := d.next(tx)
		if !open {
			return
		}
		batch = d.gather(append(batch[:0], j))
		if err != nil {
			for _, j := range batch {
				j.reply <- err
			}
			continue
		}
		d.commit(tx, batch)
	}
}

// next waits for a job. Where none comes for a while, the pages that the writer
// holds are given back.
func (d *DB) next(tx *Tx) (j *job, open bool) {
	rest := time.NewTimer(restAfter)
	defer rest.Stop()
	select {
	case j, open = <-d.queue:
		return j, open
	case <-rest.C:
	}
	if tx.conn != nil {
		_, _ = tx.conn.ExecContext(context.Background(), "PRAGMA shrink_memory") // they stay where that fails
	}
	j, open = <-d.queue
	return j, open
}

// gather adds the jobs that wait. Where none of them is in a hurry it waits for
// more, as long as the least patient of them does: a commit costs more than what
// most jobs do.
func (d *DB) gather(batch []*job) []*job {
	began, patience := time.Now(), batch[0].patience
	for len(batch) < maxBatch {
		var next *job
		select {
		case next = <-d.queue: // nil once it is closed and empty
		default:
			left := patience - time.Since(began)
			if left <= 0 || len(batch) >= enough {
				return batch
			}
			timer := time.NewTimer(left)
			select {
			case next = <-d.queue:
			case <-timer.C:
			}
			timer.Stop()
		}
		if next == nil {
			return batch
		}
		batch, patience = append(batch, next), min(patience, time.Since(began)+next.patience)
	}
	return batch
}

// close ends the statements before the connection: with one left, SQLite keeps
// the file open, and its log beside it, for good.
func (t *Tx) close() {
	for _, s := range t.stmts {
		_ = s.Close()
	}
	_ = t.conn.Close()
}

// commit runs the jobs and tells each what became of it. A commit counts when
// the file is in place before and after it.
func (d *DB) commit(tx *Tx, batch []*job) {
	d.committing.Lock()
	defer d.committing.Unlock()
	errs, err := make([]error, len(batch)), d.usable()
	if err == nil {
		err = d.inPlace()
	}
	if err == nil {
		errs, err = tx.commit(batch)
	}
	if err == nil {
		err = d.inPlace()
	}
	if err == nil {
		d.written()
		for _, f := range tx.committed {
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
		j.reply <- errs[i]
	}
	if log, err := os.Stat(d.path + "-wal"); err == nil && log.Size() > logMost {
		select {
		case d.full <- struct{}{}:
		default:
		}
	}
}

// foldLog is the loop that folds the log into the file when it is long. It works
// beside the writer, which waits for what was committed meanwhile only: a disk
// takes its time, and no commit is to wait for it.
func (d *DB) foldLog() {
	defer close(d.folded)
	fold := func() {
		// Where that fails, the next commit that can be made has it tried again.
		_, _ = d.read.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	}
	for range d.full {
		fold()
		d.committing.Lock()
		fold()
		d.committing.Unlock()
	}
}

// commit runs the jobs in one transaction, each within a savepoint of its own
// so that one that fails takes nothing of the others with it. A job that is
// alone needs none.
func (t *Tx) commit(batch []*job) (errs []error, err error) {
	errs = make([]error, len(batch))
	t.fold, t.committed = false, nil
	err = t.command("BEGIN IMMEDIATE")
	switch {
	case err != nil:
	case len(batch) == 1:
		errs[0] = call(batch[0], t)
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
		_ = t.command("ROLLBACK") // SQLite may have done so itself
	}
	if err == nil && t.fold {
		var busy, frames, folded int
		_ = t.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &folded) // the commit stands
	}
	return errs, err
}

// within runs a job in a savepoint. failed is what became of the job, err what
// became of the transaction.
func (t *Tx) within(j *job) (failed, err error) {
	if err := t.command("SAVEPOINT job"); err != nil {
		return nil, err
	}
	before := len(t.committed)
	if failed = call(j, t); failed != nil {
		t.committed = t.committed[:before]
		if err := t.command("ROLLBACK TO job"); err != nil {
			return failed, err
		}
	}
	return failed, t.command("RELEASE job")
}

func (t *Tx) command(c string) error {
	_, err := t.Exec(c)
	return err
}

// call contains panics: a mistake in one write must not end the writer. A job
// that nobody waits for any more is not begun.
func call(j *job, t *Tx) (err error) {
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
