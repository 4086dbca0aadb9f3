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

// LeaseFor is how long a crashed replica blocks the others from delivery.
const LeaseFor = 6 * time.Second

// The lease selects the delivering replica. It expires unless it is renewed, so a crashed
// replica loses it.

// TakeLease takes the lease if it is free, and reports whether this process holds it.
func (s *Queue) TakeLease(ctx context.Context) (bool, error) {
	holder, err := s.lease(ctx, "take")
	return holder == s.token, err
}

// AskForLease is TakeLease that also asks the holder to give the lease up.
func (s *Queue) AskForLease(ctx context.Context) (bool, error) {
	holder, err := s.lease(ctx, "want")
	return holder == s.token, err
}

// wanted is the reply if another replica asks for the lease.
const wanted = "wanted"

// KeepLease renews the lease, and reports whether another replica asks for it.
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
