package capture

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestWorkExpires checks that records of work are deleted at their age, each hour, that the deletion is
// verified, and tried again after a minute if some are left.
func TestWorkExpires(t *testing.T) {
	t.Parallel()
	left, keeps := 3, 1 // the first deletion leaves one
	p, _ := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"), func(o *Options) {
		o.Trim = func(_ context.Context, before time.Time, dry bool) (int, error) {
			if want := time.Unix(0, 0).Add(-24 * time.Hour); before.Before(want) || dry {
				return left, nil
			}
			n := left - keeps
			left, keeps = keeps, 0
			return n, nil
		}
	})
	k := p.ownFile
	now := time.Unix(0, 0)
	k.expire(now)
	if left != 3 {
		t.Fatal("work without an age was deleted")
	}
	b := *p.opts()
	b.Retain = ledger.Retention{Work: 24 * time.Hour}
	p.Set(b, false)
	for i, want := range []int{1, 0} {
		if k.expire(now.Add(time.Duration(i) * time.Minute)); left != want {
			t.Errorf("%d records are left after deletion %d, want %d", left, i, want)
		}
	}
	if !k.expired.Equal(now.Add(time.Minute)) {
		t.Errorf("the last deletion was at %v", k.expired)
	}
	if _, work, err := p.Expired(t.Context(), &b.Retain); work != 0 || err != nil {
		t.Errorf("%d records are left, %v", work, err)
	}
}

// TestQuotas checks that a quota counts messages before and after the measurement, for
// its owner or tenant only, and that a forget makes room.
func TestQuotas(t *testing.T) {
	t.Parallel()
	const josh, ann, other = "sha256:1|user:josh", "sha256:1|user:ann", "user:mira"
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
				var disk atomic.Int64
				disk.Store(99)
				p, _ := embeddedPipeline(t, filepath.Join(t.TempDir(), "memory.db"), func(o *Options) {
					o.Disk = func(context.Context) (int64, error) { return disk.Load(), nil }
				})
				k := p.ownFile
				b := *p.opts()
				b.Quotas = tc.q
				p.Set(b, false)
				if !before {
					k.measure(time.Now())
				}
				tn := turn("1", "g")
				tn.Owner, tn.Assistant = josh, "Noted."
				add(t, p, tn)
				if before {
					disk.Store(100)
					k.measure(time.Now().Add(time.Hour))
				}
				for _, owner := range []string{josh, ann, other} {
					if got := p.Full(owner); got != tc.want[owner] {
						t.Errorf("%s: got %q, want %q", owner, got, tc.want[owner])
					}
				}
				if got := len(p.Status().Full); (got > 0) != (len(tc.want) > 0) {
					t.Errorf("status: %q", p.Status().Full)
				}
				if err := p.Forget(t.Context(), ledger.Part{Group: "g"}, forgets.Add(1)); err != nil {
					t.Fatal(err)
				}
				disk.Store(0)
				k.measure(time.Now().Add(2 * time.Hour))
				if got := p.Full(josh); got != "" {
					t.Errorf("after a forget: %q", got)
				}
			})
		}
	}
}
