package cache

import (
	"context"
	"database/sql"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

const (
	// maxTenants bounds the tenants that are remembered: those that were
	// accepted longest ago go first.
	maxTenants = 100_000

	// tenantsInRAM bounds the tenants in RAM, at some 200 bytes each.
	tenantsInRAM = 40_000
)

// Tenants remembers the tenants whose credentials an upstream has accepted. It is
// safe for concurrent use.
type Tenants struct {
	store  tenantStore
	recent *lru.Cache[string, int64] // the Unix day of the last time
}

// tenantStore is where tenants outlive the process.
type tenantStore interface {
	// readAccepted returns the Unix day on which a tenant was accepted last; 0:
	// never.
	readAccepted(ctx context.Context, tenant string) (day int64, err error)

	// acceptAsync does not wait.
	acceptAsync(tenant string, day int64)
}

func newTenants(s tenantStore) *Tenants {
	recent, _ := lru.New[string, int64](tenantsInRAM) // fails for no size only
	return &Tenants{store: s, recent: recent}
}

func today() int64 { return time.Now().Unix() / (24 * 60 * 60) }

// Accepted reports whether an upstream has accepted a tenant's credentials. While
// the store cannot be read it knows only the tenants in RAM.
func (t *Tenants) Accepted(ctx context.Context, tenant string) bool {
	if _, ok := t.recent.Get(tenant); ok {
		return true
	}
	day, err := t.store.readAccepted(ctx, tenant)
	if err != nil || day == 0 {
		return false
	}
	t.recent.ContainsOrAdd(tenant, day)
	return true
}

// Accept stores that an upstream has accepted a tenant's credentials, once a day.
// It does not wait for the store.
func (t *Tenants) Accept(tenant string) {
	now := today()
	if day, ok := t.recent.Get(tenant); ok && day == now {
		return
	}
	t.recent.Add(tenant, now)
	t.store.acceptAsync(tenant, now)
}

// tenantFile keeps tenants in the file of one process.
type tenantFile struct{ db *sqlite.DB }

func (f tenantFile) readAccepted(ctx context.Context, tenant string) (day int64, err error) {
	err = f.db.QueryRow(ctx, "SELECT at FROM accepted WHERE tenant = ?", []any{tenant}, &day)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return day, err
}

func (f tenantFile) acceptAsync(tenant string, day int64) {
	f.db.WriteAsync(func(tx *sqlite.Tx) error {
		if _, err := tx.Exec("INSERT INTO accepted VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at", tenant, day); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM accepted WHERE tenant IN (SELECT tenant FROM accepted ORDER BY at DESC, tenant LIMIT -1 OFFSET ?)", maxTenants)
		return err
	})
}

// tenantRedis keeps tenants where replicas share them.
type tenantRedis struct{ replicas }

func (r tenantRedis) readAccepted(ctx context.Context, tenant string) (day int64, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		score, err := c.ZScore(ctx, redis.Key("accepted"), tenant).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		day = int64(score)
		return err
	})
	return day, err
}

func (r tenantRedis) acceptAsync(tenant string, day int64) {
	r.db.Async(func(ctx context.Context, c redis.Cmdable) {
		c.ZAdd(ctx, redis.Key("accepted"), redis.Z{Score: float64(day), Member: tenant})
		c.ZRemRangeByRank(ctx, redis.Key("accepted"), 0, -maxTenants-1)
	})
}
