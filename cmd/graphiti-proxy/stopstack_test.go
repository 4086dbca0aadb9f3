package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestStopIsBounded: a part that hangs, such as one that writes to a disk that
// does not answer, is left behind and named; the others end all the same.
func TestStopIsBounded(t *testing.T) {
	const grace = 30 * time.Second
	for name, tc := range map[string]struct {
		hang   []string
		grace  bool // whether the context ends
		longer time.Duration
	}{
		"none":           {nil, true, -grace},
		"one":            {[]string{"ingestion"}, true, stopBound},
		"without an end": {[]string{"ingestion"}, false, stopBound},
		"some":           {[]string{"probe", "ingestion"}, true, stopBound + leastBound},
		"all":            {[]string{"listeners", "probe", "recall", "answers", "ingestion", "memory"}, true, stopBound + 5*leastBound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stopStack{Grace: grace, Log: slog.New(slog.DiscardHandler)}
				var ended []string
				let := make(chan struct{})
				s.OnUnlock("lock", func(context.Context) error { ended = append(ended, "lock"); return nil })
				for _, part := range []string{"memory", "ingestion", "answers", "recall", "probe", "listeners"} {
					s.OnClose(part, func(context.Context) error {
						if slices.Contains(tc.hang, part) {
							<-let
							return nil
						}
						ended = append(ended, part)
						return nil
					})
				}
				ctx := context.Background()
				if tc.grace {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, grace)
					defer cancel()
				}
				began := time.Now()
				err := s.Shutdown(ctx)
				if took := time.Since(began); took != grace+tc.longer {
					t.Errorf("took %s, want %s", took, grace+tc.longer)
				}
				var stuck *stuckError
				if errors.As(err, &stuck) != (len(tc.hang) > 0) {
					t.Error(err)
				} else if stuck != nil && len(stuck.Parts) != len(tc.hang) {
					t.Errorf("named %v, want %v", stuck.Parts, tc.hang)
				}
				want := 7 - len(tc.hang)
				if len(tc.hang) > 0 {
					want-- // the lock
				}
				if len(ended) != want || len(tc.hang) > 0 && slices.Contains(ended, "lock") {
					t.Errorf("ended %v", ended)
				}
				close(let)
			})
		})
	}
}
