package cache

import (
	"context"
	"strconv"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// tenantsInRAM bounds the tenants in RAM, at some 250 bytes each.
const tenantsInRAM = 10_000

// Tenants stores the tenants with accepted credentials. It is safe for concurrent use.
type Tenants struct {
	store  *tables
	recent *ristretto.Cache[string, int64] // the Unix day of the last time; may lack any tenant
}

func newTenants(s *tables) *Tenants {
	// It keeps the most frequent ones, and fails only for a size of 0.
	recent, _ := ristretto.NewCache(&ristretto.Config[string, int64]{NumCounters: 10 * tenantsInRAM, MaxCost: tenantsInRAM, BufferItems: 64, IgnoreInternalCost: true})
	return &Tenants{store: s, recent: recent}
}

func today() int64 { return time.Now().Unix() / (24 * 60 * 60) }

// Accepted reports whether an upstream has accepted a tenant's credentials. If the store
// cannot be read, it knows only the tenants in RAM.
func (t *Tenants) Accepted(ctx context.Context, tenant string) bool {
	if _, ok := t.recent.Get(tenant); ok {
		return true
	}
	var day int64
	err := t.store.get(ctx, tenantKind, [][]byte{[]byte(tenant)}, func(_ int, value []byte) (err error) {
		day, err = strconv.ParseInt(string(value), 10, 64)
		return err
	})
	if err != nil || day == 0 {
		return false
	}
	t.recent.Set(tenant, day, 1)
	t.recent.Wait() // then the next request finds it
	return true
}

// Accept stores, once a day, that an upstream has accepted a tenant's credentials. It does
// not wait for the store.
func (t *Tenants) Accept(tenant string) {
	now := today()
	if day, ok := t.recent.Get(tenant); ok && day == now {
		return
	}
	t.recent.Set(tenant, now, 1)
	t.recent.Wait()
	t.store.writeAsync(&record{kind: tenantKind, key: []byte(tenant), value: strconv.AppendInt(nil, now, 10)})
}
