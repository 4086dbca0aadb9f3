package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWithDeadline_AsContext checks that a deadline ends like one of context.WithDeadline,
// whether or not another context was derived from it before.
func TestWithDeadline_AsContext(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		comes bool // the deadline expires
		end   func(parent, end context.CancelFunc)
		want  error
	}{
		"still open":                       {},
		"ended":                            {end: func(_, end context.CancelFunc) { end() }, want: context.Canceled},
		"the parent ends":                  {end: func(parent, _ context.CancelFunc) { parent() }, want: context.Canceled},
		"its time comes":                   {comes: true, want: context.DeadlineExceeded},
		"its time comes, and then its end": {comes: true, end: func(_, end context.CancelFunc) { end() }, want: context.DeadlineExceeded},
	} {
		for _, waited := range []bool{false, true} {
			if tc.comes && tc.end != nil && !waited {
				continue // the expiry is observed only if another context waits for it
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancel(t.Context())
					defer cancel()
					d, end := withDeadline(parent, time.Now().Add(time.Minute))
					defer end()
					var child context.Context = d
					if waited {
						var release context.CancelFunc
						child, release = context.WithCancel(d)
						defer release()
					}
					if tc.comes {
						time.Sleep(time.Minute)
						synctest.Wait()
					}
					if tc.end != nil {
						tc.end(cancel, end)
						synctest.Wait()
					}
					for of, ctx := range map[string]context.Context{"the deadline": d, "a context derived before": child} {
						if got := ctx.Err(); !errors.Is(got, tc.want) {
							t.Errorf("%s, waited for %t: got the error %v, want %v", of, waited, got, tc.want)
						}
						select {
						case <-ctx.Done():
							if tc.want == nil {
								t.Errorf("%s, waited for %t: done, want open", of, waited)
							}
						default:
							if tc.want != nil {
								t.Errorf("%s, waited for %t: open, want done", of, waited)
							}
						}
					}
				})
			})
		}
	}
}
