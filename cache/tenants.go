package cache

import (
	"context"
	"time"
)

const (
	// maxTenants bounds the tenants that are remembered: those that were
	// accepted longest ago go first.
	maxTenants = 100_000

	// tenantsInMemory bounds one generation of tenants in memory.
	tenantsInMemory = 4 << 20
	costOfTenant    = 150
)

// Tenants remembers whose credentials an upstream has accepted. It is safe for
// concurrent use.
type Tenants struct {
	store  store
	recent *recent[string, int64] // when they were, in Unix days
}

func today() int64 { return time.Now().Unix() / (24 * 60 * 60) }

// Accepted reports whether a tenant's were. While the store cannot be read it
// knows only what is in memory.
func (t *Tenants) Accepted(ctx context.Context, tenant string) bool {
	if _, ok := t.recent.get(tenant); ok {
		return true
	}
	day, err := t.store.readAccepted(ctx, tenant)
	if err != nil || day == 0 {
		return false
	}
	t.recent.putNew(tenant, day, costOfTenant)
	return true
}

// Accept notes that a tenant's were, once a day. It does not wait for the
// store.
func (t *Tenants) Accept(tenant string) {
	now := today()
	if day, ok := t.recent.get(tenant); ok && day == now {
		return
	}
	t.recent.put(tenant, now, costOfTenant)
	t.store.acceptLater(tenant, now)
}
