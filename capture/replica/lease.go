package replica

import (
	"context"
	_ "embed"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

//go:embed lua/lease.lua
var leaseSource string

var leaseScript = redis.NewScript(leaseSource)

var leaseName = redis.Key("lease")

// LeaseFor is how long a replica that is gone keeps the others from delivering.
const LeaseFor = 6 * time.Second

// The lease decides which replica delivers. It is held for a while and must be
// renewed before; who is gone loses it by itself.

// TakeLease takes the lease if nobody has it, and reports whether this process
// has it.
func (s *Queue) TakeLease(ctx context.Context) (bool, error) {
	holder, err := s.lease(ctx, "take")
	return holder == s.token, err
}

// AskForLease is TakeLease, and asks its holder for it.
func (s *Queue) AskForLease(ctx context.Context) (bool, error) {
	holder, err := s.lease(ctx, "want")
	return holder == s.token, err
}

// wanted says that the holder is asked to give the lease up.
const wanted = "wanted"

// KeepLease renews the lease, and says whether another replica asks for it.
func (s *Queue) KeepLease(ctx context.Context) (held, asked bool, err error) {
	holder, err := s.lease(ctx, "keep")
	return holder == s.token || holder == wanted, holder == wanted, err
}

// LeaveLease gives the lease up.
func (s *Queue) LeaveLease(ctx context.Context) error {
	_, err := s.lease(ctx, "leave")
	return err
}

func (s *Queue) lease(ctx context.Context, what string) (holder string, err error) {
	err = s.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		holder, err = leaseScript.Run(ctx, c, []string{leaseName, redis.Key("wanted")}, s.token, what, LeaseFor.Milliseconds()).Text()
		return err
	})
	return holder, err
}
