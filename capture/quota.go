package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Quotas limit stored messages and their bytes; 0 means no limit. The zero value limits
// nothing.
type Quotas struct {
	Person, Tenant, All graphiti.Extent

	Disk int64 // bytes of the databases
}

// FullRemedy is the remedy for a reached quota.
const FullRemedy = "raise the quota, set memory.retain, or forget something; the proxy measures again within minutes"

// everything is the key of all messages in a usage, apart from owners and tenants.
const everything = "tenant of all"

// usage is the stored extent of each owner and tenant: the last measurement, plus later messages of
// this process.
type usage struct {
	storing sync.RWMutex // held to measure, and shared to store and count turns, so that each counts once

	mu   sync.Mutex // protects the fields below
	by   map[string]graphiti.Extent
	disk int64
	next time.Time // earliest time of the next measurement
}

// tenantOf returns the key of an owner's tenant.
func tenantOf(owner string) string { return "tenant " + graphiti.TenantOf(owner) }

func (u *usage) addLocked(of graphiti.Extent, keys ...string) {
	for _, key := range keys {
		all := u.by[key]
		u.by[key] = graphiti.Extent{Messages: all.Messages + of.Messages, Bytes: all.Bytes + of.Bytes}
	}
}

// measure measures the memory, if there is a quota. A group with several owners counts for each.
func (p *Pipeline) measure(now time.Time) {
	u, ctx := &p.usage, context.Background()
	u.storing.Lock()
	defer u.storing.Unlock()
	if now.Before(u.next) || p.opts().Quotas == (Quotas{}) {
		return
	}
	extents, err := p.Extents(ctx)
	owned, failed := p.Owned(ctx, "")
	disk, unknown := p.disk(ctx)
	if err = cmp.Or(err, failed, unknown); err != nil {
		p.log.Warn("measure the memory for its quotas failed, retrying", "error", err)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.by, u.disk, u.next = make(map[string]graphiti.Extent), disk, now.Add(100*time.Since(now)) // a large memory less often
	for _, of := range extents {
		u.addLocked(of, everything)
	}
	for _, o := range owned {
		u.addLocked(extents[o.Group], o.Owner, tenantOf(o.Owner))
	}
}

// added counts stored turns until the next measurement.
func (u *usage) added(turns []ledger.Turn, all []ledger.Added) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by == nil {
		return
	}
	for i := range turns {
		t, n := &turns[i], int64(len(all[i].Groups))
		of := graphiti.Extent{Messages: n * int64(min(1, len(t.User))+min(1, len(t.Assistant))), Bytes: n * int64(len(t.User)+len(t.Assistant))}
		u.addLocked(of, everything, t.Owner, tenantOf(t.Owner))
		u.disk += of.Bytes
	}
}

// Full implements Groups.
func (p *Pipeline) Full(owner string) string {
	u, q := &p.usage, &p.opts().Quotas
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case q.Disk > 0 && u.disk >= q.Disk:
		return "disk"
	case u.by[everything].Reaches(q.All):
		return "all"
	case u.by[tenantOf(owner)].Reaches(q.Tenant):
		return "tenant"
	case u.by[owner].Reaches(q.Person):
		return "person"
	}
	return ""
}

// full describes the reached quotas.
func (p *Pipeline) full() (list []string) {
	p.usage.mu.Lock()
	owners := slices.Sorted(maps.Keys(p.usage.by))
	p.usage.mu.Unlock()
	for _, owner := range owners {
		switch which := p.Full(owner); {
		case which == "disk" || which == "all":
			return []string{"the quota of " + which + " is reached: no new message is stored"}
		case which != "" && !strings.HasPrefix(owner, "tenant "):
			list = append(list, fmt.Sprintf("quota.%s is reached: no new message of %s is stored", which, owner))
		}
	}
	return list
}
