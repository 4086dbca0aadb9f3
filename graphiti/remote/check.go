package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Check is the result of one check of a memory service.
type Check struct {
	Name   string        `json:"name"`
	Took   time.Duration `json:"took_ns"`
	OK     bool          `json:"ok"`
	Detail string        `json:"detail,omitempty"` // the problem, or details of the result
	Remedy string        `json:"remedy,omitempty"` // advice for the operator
}

// Run makes one check, and reports whether it succeeded.
func Run(ctx context.Context, report func(Check), name string, f func(context.Context) error, remedy string) bool {
	return run(ctx, report, name, f, func(err error) string {
		var status *graphiti.StatusError
		if errors.As(err, &status) && status.Code == http.StatusMisdirectedRequest {
			return graphiti.Remedy(err)
		}
		return remedy
	}) == nil
}

func run(ctx context.Context, report func(Check), name string, f func(context.Context) error, remedy func(error) string) error {
	start := time.Now()
	err := f(ctx)
	c := Check{Name: name, Took: time.Since(start), OK: err == nil}
	if err != nil {
		c.Detail, c.Remedy = err.Error(), cmp.Or(graphiti.LocalRemedy(err), remedy(err))
	}
	report(c)
	return err
}

// Reach is Run for the first check. It reports whether the service answered: if not, later
// checks would fail for the same reason. another is the remedy if the server does not know
// the call.
func Reach(ctx context.Context, report func(Check), name string, f func(context.Context) error, remedy, another string) (answered bool) {
	unknown := func(err error) bool {
		var status *graphiti.StatusError
		return errors.As(err, &status) && status.Code == http.StatusNotFound
	}
	err := run(ctx, report, name, f, func(err error) string {
		if unknown(err) {
			return another
		}
		return remedy
	})
	var op *net.OpError
	return !errors.As(err, &op) && !errors.Is(err, context.DeadlineExceeded) && !unknown(err)
}

// checkText states a fact, so that Graphiti extracts one from it.
const checkText = "graphiti-proxy-check stores its memory in Graphiti. The sentence about graphiti-proxy-check is deleted again."

// Smoke writes to a separate group, waits until the episode appears, which proves that the
// service's worker runs, and deletes the group in any case. It gives up when ctx ends.
func Smoke(ctx context.Context, m *graphiti.Memory, report func(Check)) {
	group := "graphiti_proxy_smoke" // a constant: on FalkorDB its empty graph remains
	name := "graphiti-proxy.smoke." + rand.Text()
	written := Run(ctx, report, "write a message", func(ctx context.Context) error {
		return m.Write(ctx, group, []graphiti.Row{{
			Name: name, Role: graphiti.RoleUser, Text: checkText, Said: time.Now(),
			Source: `{"source":"graphiti-proxy"}`,
		}})
	}, "look at Graphiti's log")
	if written {
		remedy := graphiti.NeverKept.Remedy()
		if m.Apart() {
			remedy = graphiti.ModelFails.Remedy()
		}
		Run(ctx, report, "wait for its episode", func(ctx context.Context) error { return await(ctx, m, group, name) },
			remedy)
	}
	// A separate context: the group is deleted even after ctx has ended.
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	deleting := ""
	Run(cleanup, func(c Check) {
		c.Remedy = cmp.Or(deleting, c.Remedy)
		report(c)
	}, "delete the group", func(ctx context.Context) error {
		err := m.Forget(ctx, group)
		deleting = graphiti.Remedy(err)
		return err
	}, "delete the group "+group+" by hand")
}

// await waits until a message is listed.
func await(ctx context.Context, m *graphiti.Memory, group, name string) error {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		episodes, err := m.Episodes(ctx, group, 10)
		for _, e := range episodes {
			if e.Name == name {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the episode did not appear in time"), err)
		case <-time.After(wait):
		}
	}
}
