package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

const (
	leaseFor    = 6 * time.Second
	renewEvery  = 2 * time.Second
	takeEvery   = 500 * time.Millisecond
	leaseMargin = time.Second // the holder ends its work this long before the lease ends
)

// Take waits until this process holds the lease. led ends when the lease is lost or ctx ends.
// release gives the lease back.
func (s *Server) Take(ctx context.Context) (led context.Context, release func(), err error) {
	for {
		until := time.Now().Add(leaseFor - leaseMargin)
		if token := s.hold(ctx, leaseFor, 0); token > 0 {
			s.token.Store(token)
			led, release = s.lead(ctx, until, token)
			return led, release, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(takeEvery):
		}
	}
}

// Led returns an error unless this process holds the lease that it took last. No other process can
// take it before the end of the transaction.
func (s *Server) Led(tx *database.Tx) error {
	err := tx.QueryRow("SELECT token FROM "+schemaName+".lease WHERE holder = ? AND token = ? FOR SHARE", s.name, s.token.Load()).Scan(new(int64))
	if errors.Is(err, sql.ErrNoRows) {
		return errors.New("another process has the lease")
	}
	return err
}

// hold renews the lease with a token, or takes it with token 0, unless another process holds it. It
// returns the token, or 0.
func (s *Server) hold(ctx context.Context, life time.Duration, old int64) (token int64) {
	_ = s.do(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, pollTimeout)
		defer cancel()
		return s.sql.QueryRowContext(ctx, "UPDATE "+schemaName+`.lease SET token = token + CASE WHEN $3 = 0 THEN 1 ELSE 0 END, holder = $1, until = clock_timestamp() + $2::interval
			WHERE holder = $1 AND $3::bigint IN (0, token) OR $3 = 0 AND until < clock_timestamp() RETURNING token`, s.name, life.String(), old).Scan(&token)
	})
	return token
}

// lead renews the lease until ctx ends or it is lost.
func (s *Server) lead(ctx context.Context, until time.Time, token int64) (context.Context, func()) {
	led, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	// Ends with led.
	s.parts.Go(func() {
		defer close(done)
		defer cancel()
		for {
			select {
			case <-led.Done():
				return
			case <-s.base.Done():
				return
			case <-time.After(min(renewEvery, time.Until(until))):
			}
			next := time.Now().Add(leaseFor - leaseMargin)
			if s.hold(led, leaseFor, token) > 0 {
				until = next
			} else if !time.Now().Before(until) {
				return
			}
		}
	})
	return led, func() {
		cancel()
		<-done
		s.hold(context.WithoutCancel(ctx), 0, token)
	}
}
