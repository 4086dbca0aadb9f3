package postgres

import (
	"context"
	"time"
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
		if s.hold(ctx, leaseFor) {
			led, release = s.lead(ctx, until)
			return led, release, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(takeEvery):
		}
	}
}

// hold takes or renews the lease, unless another process holds it, and reports its success.
func (s *Server) hold(ctx context.Context, life time.Duration) bool {
	var token int64
	err := s.do(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, pollTimeout)
		defer cancel()
		return s.sql.QueryRowContext(ctx, "UPDATE "+schemaName+`.lease SET token = token + CASE WHEN holder = $1 THEN 0 ELSE 1 END, holder = $1, until = clock_timestamp() + $2::interval
			WHERE holder = $1 OR until < clock_timestamp() RETURNING token`, s.name, life.String()).Scan(&token)
	})
	return err == nil
}

// lead renews the lease until ctx ends or it is lost.
func (s *Server) lead(ctx context.Context, until time.Time) (context.Context, func()) {
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
			if s.hold(led, leaseFor) {
				until = next
			} else if !time.Now().Before(until) {
				return
			}
		}
	})
	return led, func() {
		cancel()
		<-done
		s.hold(context.WithoutCancel(ctx), 0)
	}
}
