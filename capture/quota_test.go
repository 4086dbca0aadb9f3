package capture

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestWorkExpires checks that messages about work are deleted at their age, and that the other
// messages of their turns stay.
func TestWorkExpires(t *testing.T) {
	t.Parallel()
	p, _ := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"))
	tn := turn("old", "g")
	tn.Targets[0].Scope, tn.Work = graphiti.ScopeWorkspace, []string{"changed a.go"}
	tn.Said, tn.Answered = time.Now().Add(-48*time.Hour), time.Now().Add(-48*time.Hour)
	must(t, p.Add(t.Context(), tn))
	count := func() (all, work int) {
		for r, err := range p.Rows(t.Context(), "g", graphiti.Filter{Text: true}) {
			must(t, err)
			if all++; graphiti.IsWork(r.Name) {
				work++
			}
		}
		return all, work
	}
	for _, tc := range []struct {
		of        ledger.Retention
		all, work int
	}{{ledger.Retention{}, 2, 1}, {ledger.Retention{Work: 72 * time.Hour}, 2, 1}, {ledger.Retention{Work: 24 * time.Hour}, 1, 0}} {
		b := *p.opts()
		b.Retain = tc.of
		p.Set(b, false)
		p.expired = time.Time{}
		p.expire(time.Now())
		if all, work := count(); all != tc.all || work != tc.work {
			t.Errorf("%s: %d messages, %d of them about work; want %d and %d", tc.of.Work, all, work, tc.all, tc.work)
		}
	}
	if left, err := p.Expired(t.Context(), &ledger.Retention{Work: time.Hour}); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

// Owners of TestQuotas.
const josh, ann, other = "sha256:1|user:josh", "sha256:1|user:ann", "user:mira"

// TestQuotas checks that a quota counts messages before and after the measurement, for
// its owner or tenant only, and that a forget makes room.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		q    Quotas
		want map[string]string // reached quota by owner
	}{
		"none":             {Quotas{}, map[string]string{}},
		"person, messages": {Quotas{Person: graphiti.Extent{Messages: 2}}, map[string]string{josh: "person"}},
		"person, bytes":    {Quotas{Person: graphiti.Extent{Bytes: 1}}, map[string]string{josh: "person"}},
		"tenant":           {Quotas{Tenant: graphiti.Extent{Messages: 2}}, map[string]string{josh: "tenant", ann: "tenant"}},
		"all":              {Quotas{All: graphiti.Extent{Messages: 2}}, map[string]string{josh: "all", ann: "all", other: "all"}},
		"disk":             {Quotas{Disk: 100}, map[string]string{josh: "disk", ann: "disk", other: "disk"}},
		"room":             {Quotas{Person: graphiti.Extent{Messages: 3}, Disk: 1000}, map[string]string{}},
	} {
		for when, before := range map[string]bool{"measured": true, "added": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				testQuota(t, tc.q, tc.want, before)
			})
		}
	}
}

// TestQuotas_EachTurnCountsOnce checks that no turn is stored during a measurement, which may miss it or
// count it twice, and that none begins while a turn is stored and counted.
func TestQuotas_EachTurnCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p *Pipeline
		measured, stored := 0, 0
		p, _ = embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"), func(o *Options) {
			o.Disk = func(context.Context) (int64, error) {
				if measured++; p.usage.storing.TryRLock() {
					t.Error("a turn can be stored during a measurement")
				}
				return 0, nil
			}
		})
		synctest.Wait() // for the measurement of a start
		b := *p.opts()
		b.Quotas.All.Messages = 9
		p.Set(b, false)
		p.measure(time.Now())
		tn := turn("1", "g")
		_, err := p.add(t.Context(), []ledger.Turn{tn}, func(ctx context.Context, turns []ledger.Turn, now time.Time) ([]ledger.Added, error) {
			if stored++; p.usage.storing.TryLock() {
				t.Error("a measurement can begin while a turn is stored")
			}
			return p.Ledger.Add(ctx, turns, now)
		})
		must(t, err)
		if measured != 1 || stored != 1 {
			t.Errorf("%d measurements, %d stores, want one of each", measured, stored)
		}
	})
}

// testQuota adds a message before or after a measurement, and checks the reached quota of each owner.
func testQuota(t *testing.T, q Quotas, want map[string]string, before bool) {
	synctest.Test(t, func(t *testing.T) {
		var disk atomic.Int64
		disk.Store(99)
		p, _ := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"), func(o *Options) {
			o.Disk = func(context.Context) (int64, error) { return disk.Load(), nil }
		})
		synctest.Wait() // for the measurement of a start
		b := *p.opts()
		b.Quotas = q
		p.Set(b, false)
		if !before {
			p.measure(time.Now())
		}
		tn := turn("1", "g")
		tn.Owner, tn.Assistant = josh, "Noted."
		add(t, p, tn)
		if before {
			disk.Store(100)
			p.measure(time.Now().Add(time.Hour))
		}
		for _, owner := range []string{josh, ann, other} {
			if got := p.Full(owner); got != want[owner] {
				t.Errorf("%s: got %q, want %q", owner, got, want[owner])
			}
		}
		if got := len(p.Status().Full); (got > 0) != (len(want) > 0) {
			t.Errorf("status: %q", p.Status().Full)
		}
		must(t, p.Forget(t.Context(), ledger.Part{Group: "g"}, forgets.Add(1)))
		disk.Store(0)
		p.measure(time.Now().Add(2 * time.Hour))
		if got := p.Full(josh); got != "" {
			t.Errorf("after a forget: %q", got)
		}
	})
}
