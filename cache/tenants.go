package cache

import (
	"context"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// tenantsInRAM bounds the tenants in RAM, at some 250 bytes each.
const tenantsInRAM = 10_000

// Tenants stores the tenants with accepted credentials. It is safe for concurrent use.
type Tenants struct {
	store  *tables
	recent *lru.Cache[string, int64] // the Unix day of the last time
}

func newTenants(s *tables) *Tenants {
	recent, _ := lru.New[string, int64](tenantsInRAM) // fails only for a size of 0
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
	t.recent.Add(tenant, day)
	return true
}

// Accept stores, once a day, that an upstream has accepted a tenant's credentials. It does
// not wait for the store.
func (t *Tenants) Accept(tenant string) {
	now := today()
	if day, ok := t.recent.Get(tenant); ok && day == now {
		return
	}
	t.recent.Add(tenant, now)
	t.store.writeAsync(&record{kind: tenantKind, key: []byte(tenant), value: strconv.AppendInt(nil, now, 10)})
}
