package capture

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

// leaseFor is how long a replica that is gone keeps the others from
// delivering.
const leaseFor = 6 * time.Second

// lease decides which replica delivers. It is held until a moment, and must be
// renewed before; who is gone loses it by itself.
type lease struct {
	db    *redis.DB
	token string
}

// take takes the lease if nobody has it, want also asks its holder for it, and
// keep renews it. They report whether this process has it.
func (l lease) take(ctx context.Context) (bool, error) { return l.ask(ctx, "take") }
func (l lease) want(ctx context.Context) (bool, error) { return l.ask(ctx, "want") }

// wanted says that the holder is asked to give the lease up.
const wanted = "wanted"

func (l lease) keep(ctx context.Context) (held, isWanted bool, err error) {
	holder, err := l.run(ctx, "keep")
	return holder == l.token || holder == wanted, holder == wanted, err
}

func (l lease) leave(ctx context.Context) error {
	_, err := l.run(ctx, "leave")
	return err
}

func (l lease) ask(ctx context.Context, what string) (bool, error) {
	holder, err := l.run(ctx, what)
	return holder == l.token, err
}

func (l lease) run(ctx context.Context, what string) (holder string, err error) {
	err = l.db.Ease(ctx, func(ctx context.Context, c redis.Cmdable) error {
		holder, err = leaseScript.Run(ctx, c, []string{leaseName, redis.Key("wanted")}, l.token, what, leaseFor.Milliseconds()).Text()
		return err
	})
	return holder, err
}
