package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// liveEvery is the interval between signs of life of a replica, and liveFor the time after
	// the last one in which others wait for it.
	liveEvery = 5 * time.Second
	liveFor   = 30 * time.Second

	// announceEvery is the interval between checks of the other replicas.
	announceEvery = 20 * time.Millisecond

	// applyWithin bounds the application of changes.
	applyWithin = 5 * time.Second
)

// OnChange makes the Server call f now, and after each change that a process announces. It calls
// f again after an error.
func (s *Server) OnChange(f func(context.Context) error) {
	s.onChange.Store(&f)
	s.applied.Store(-1)
}

// poll applies the changes that other replicas have announced.
func (s *Server) poll() error {
	ctx, cancel := context.WithTimeout(s.base, pollTimeout)
	defer cancel()
	var version, from int
	var changes int64
	var now time.Time
	err := s.own.QueryRow(ctx, "SELECT version, readable_from, n, clock_timestamp() FROM "+schemaName+".version, "+schemaName+".changes").Scan(&version, &from, &changes, &now)
	if err == nil {
		s.ahead.Store(int64(time.Until(now)))
		err = s.readable(version, from)
	}
	if err != nil {
		return err
	}
	applied := changes == s.applied.Load()
	if !applied && s.apply() == nil {
		s.applied.Store(changes)
	} else if applied && time.Since(s.seen) < liveEvery {
		return nil
	}
	return s.live(ctx, s.own)
}

func (s *Server) apply() error {
	f := s.onChange.Load()
	if f == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.base, applyWithin)
	defer cancel()
	return (*f)(ctx)
}

// live writes a sign of life, with the changes that this replica has applied.
func (s *Server) live(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "INSERT INTO "+schemaName+".replicas AS r VALUES ($1, $2, now()) ON CONFLICT (name) DO UPDATE SET applied = excluded.applied, seen_at = excluded.seen_at", s.name, s.applied.Load())
	if err == nil {
		s.seen = time.Now()
		_, err = conn.Exec(ctx, "DELETE FROM "+schemaName+".replicas WHERE seen_at < now() - interval '1 day'")
	}
	return err
}

// leave makes the others not wait for this replica.
func (s *Server) leave() {
	if s.own != nil {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
		defer cancel()
		_, _ = s.own.Exec(ctx, "DELETE FROM "+schemaName+".replicas WHERE name = $1", s.name) // otherwise they wait for up to liveFor
	}
}

// Announce announces a change, and returns when every replica that is up has applied it.
func (s *Server) Announce(ctx context.Context) error {
	err := s.announce(ctx)
	if err != nil {
		return fmt.Errorf("tell the other replicas: %w", err)
	}
	return nil
}

// Notify announces a change, and does not wait for the replicas.
func (s *Server) Notify(ctx context.Context) error {
	_, err := s.change(ctx)
	return err
}

func (s *Server) change(ctx context.Context) (n int64, err error) {
	err = s.do(ctx, func(ctx context.Context) error {
		return s.sql.QueryRowContext(ctx, "UPDATE "+schemaName+".changes SET n = n + 1 RETURNING n").Scan(&n)
	})
	return n, err
}

func (s *Server) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, liveFor+applyWithin)
	defer cancel()
	n, err := s.change(ctx)
	for late := 1; err == nil && late > 0; {
		err = s.do(ctx, func(ctx context.Context) error {
			return s.sql.QueryRowContext(ctx, "SELECT count(*) FROM "+schemaName+".replicas WHERE applied < $1 AND seen_at > now() - $2::interval", n, liveFor.String()).Scan(&late)
		})
		if err == nil && late > 0 {
			select {
			case <-time.After(announceEvery):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return err
}
