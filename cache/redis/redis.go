package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ErrDown says that the server cannot be used. Calls fail with it until a check
// shows that the server can be used again.
var ErrDown = errors.New("redis cannot be used; start it, give it room, or correct state.redis_url")

// Nil is the error of a call for a key that does not exist.
const Nil = goredis.Nil

// Z is a member of a sorted set.
type Z = goredis.Z

// SetArgs are the conditions of a SET.
type SetArgs = goredis.SetArgs

// StringSliceCmd is a call that returns strings.
type StringSliceCmd = goredis.StringSliceCmd

// Cmdable has the server's commands as methods.
type Cmdable = goredis.Cmdable

const (
	// prefix begins every key. Its number changes when an older version of the
	// proxy could not read what a newer one writes.
	prefix = "graphiti-proxy:2:"

	dialTimeout = 500 * time.Millisecond
	callTimeout = time.Second

	// hanging is how long a call must have taken, when its context ends, to make the
	// watch check the server.
	hanging = 50 * time.Millisecond

	// pingEvery is how often a server that is down is checked, roomEvery how often one
	// that is full, and pingTimeout how long a check may take.
	pingEvery   = 100 * time.Millisecond
	roomEvery   = time.Second
	pingTimeout = 500 * time.Millisecond

	// sameOutage is how long after its end another outage is the same one.
	sameOutage = 10 * time.Second

	// settle is how long, after an outage, other replicas may still take the server for
	// down.
	settle = time.Second

	// queued bounds the calls of Async that wait.
	queued = 4096
)

// quiet turns off the library's own log: its calls return their errors, and we log an
// outage once.
var quiet sync.Once

// Down is an outage. A full server is still used for the calls of Ease.
type Down struct {
	Since time.Time
	Why   string // the error that began it
	Full  bool   // the server answers, and has no room for a write
}

// recovery says when an outage ended (at), and when it had begun (since).
type recovery struct{ at, since time.Time }

// DB is the connection to the server that replicas share. It is safe for concurrent
// use.
type DB struct {
	log    *slog.Logger
	client *goredis.Client
	down   atomic.Pointer[Down]
	back   atomic.Pointer[recovery]      // nil: it was never down
	ahead  atomic.Pointer[time.Duration] // how far the server's clock is ahead of ours; nil: not measured
	failed chan struct{}                 // wakes the watch
	queue  chan func(context.Context, Cmdable)
	base   context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Open prepares the connection to a URL (redis:// or rediss://). The server need not be
// up.
func Open(url string, log *slog.Logger) (*DB, error) {
	o, err := Parse(url)
	if err != nil {
		return nil, err
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialTimeout, callTimeout, callTimeout
	o.ContextTimeoutEnabled = true
	o.MaxRetries = 1 // a connection from before the server's restart
	o.DialerRetries = 1
	o.ClientName = "graphiti-proxy"
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	quiet.Do(logging.Disable)
	d := &DB{
		log: log, client: goredis.NewClient(o),
		failed: make(chan struct{}, 1), // a second one would say nothing new
		queue:  make(chan func(context.Context, Cmdable), queued),
	}
	d.base, d.cancel = context.WithCancel(context.Background())
	// Both end when Close cancels base.
	d.wg.Go(d.watch)
	d.wg.Go(d.write)
	return d, nil
}

// Parse reads the URL of a server. Its error quotes nothing of the URL.
func Parse(url string) (*goredis.Options, error) {
	o, err := goredis.ParseURL(url)
	if err != nil { // err may quote a password
		return nil, errors.New("not an address of Redis; write e.g. redis://:password@127.0.0.1:6379/0, or rediss:// for TLS")
	}
	return o, nil
}

// Close makes the calls of Async that wait, and closes the connections.
func (d *DB) Close() error {
	d.cancel()
	d.wg.Wait()
	return d.client.Close()
}

// Key joins the parts of a key behind the prefix.
func Key(parts ...string) string { return prefix + strings.Join(parts, ":") }

// Down returns the outage of the server; nil: there is none.
func (d *DB) Down() *Down { return d.down.Load() }

// Settled reports whether the server is up, and has been for so long that the other
// replicas use it too. Before that they would not read what this one writes.
func (d *DB) Settled() bool {
	back := d.back.Load()
	return d.down.Load() == nil && (back == nil || time.Since(back.at) > settle)
}

// Do runs f, which makes calls, for at most callTimeout. It returns ErrDown without
// running f while the server is down or full.
func (d *DB) Do(ctx context.Context, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, callTimeout, false, f)
}

// wait is Do for calls in which the server itself waits, for up to most.
func (d *DB) wait(ctx context.Context, most time.Duration, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, most+callTimeout, false, f)
}

// Ease is Do for calls that need no room on the server, and so are made while it is
// full too: they only read, delete, or write after they have deleted something.
func (d *DB) Ease(ctx context.Context, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, callTimeout, true, f)
}

// EaseWait is Ease for calls in which the server itself waits, for up to most.
func (d *DB) EaseWait(ctx context.Context, most time.Duration, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, most+callTimeout, true, f)
}

func (d *DB) do(ctx context.Context, most time.Duration, eases bool, f func(context.Context, Cmdable) error) error {
	if down := d.down.Load(); down != nil && (!down.Full || !eases) {
		return ErrDown
	}
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := f(bounded, d.client)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Since(start) > hanging:
		d.checkSoon()
	case ctx.Err() == nil && unreachable(err):
		d.fail(err)
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	return err
}

// At converts a moment of our clock to the server's. A script compares it with the
// server's clock, to do nothing when its caller has given up: a server that has hung runs
// the script later.
func (d *DB) At(ctx context.Context, t time.Time) (time.Time, error) {
	ahead := d.ahead.Load()
	if ahead == nil {
		err := d.Do(ctx, func(ctx context.Context, c Cmdable) error {
			there, err := c.Time(ctx).Result()
			if err != nil {
				return err
			}
			// No more than the server is ahead, however long the answer, or the
			// connection before it, has taken: a moment comes out too early
			// rather than too late.
			diff := time.Until(there)
			ahead = &diff
			return nil
		})
		if err != nil {
			return time.Time{}, err
		}
		d.ahead.Store(ahead)
	}
	return t.Add(*ahead), nil
}

// useless are the error codes of a server that cannot be used for anything, and full is
// that of one that has no room
// (https://redis.io/docs/latest/develop/reference/eviction/).
var useless = []string{"LOADING", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "WRONGPASS", "NOPERM"}

const full = "OOM"

// unreachable reports whether an error means that the server is gone or useless, and not
// that it has understood a call and refused it.
func unreachable(err error) bool {
	var answer goredis.Error
	if !errors.As(err, &answer) {
		return !errors.Is(err, context.Canceled)
	}
	return says(answer, full) || slices.ContainsFunc(useless, func(code string) bool { return says(answer, code) })
}

// says reports whether an error has a code. Before Redis 7, the error of a script quotes
// that of the call in it.
func says(answer error, code string) bool {
	text := answer.Error()
	return strings.HasPrefix(text, code) || strings.HasPrefix(text, "ERR Error running script") && strings.Contains(text, " -"+code+" ")
}

// fail stores that the server is down, and logs the beginning of an outage. A failure
// within sameOutage after an outage continues that one.
func (d *DB) fail(err error) {
	if d.base.Err() != nil {
		return
	}
	var answer goredis.Error
	now := &Down{time.Now(), err.Error(), errors.As(err, &answer) && says(answer, full)}
	again := false
	for {
		before := d.down.Load()
		if before != nil && before.Full == now.Full {
			return
		}
		if before != nil {
			now.Since = before.Since
		} else if back := d.back.Load(); back != nil && time.Since(back.at) < sameOutage {
			now.Since, again = back.since, true
		}
		if d.down.CompareAndSwap(before, now) {
			break
		}
	}
	switch {
	case again:
	case now.Full:
		d.log.Warn("redis is full: chats go on without new memories, and turns wait in the local spool; what it holds is delivered, which makes room", "error", err)
	default:
		d.log.Warn("redis cannot be used: chats go on without new memories, and turns wait in the local spool", "error", err)
	}
	d.checkSoon()
}

// checkSoon makes watch check the server.
func (d *DB) checkSoon() {
	select {
	case d.failed <- struct{}{}:
	default:
	}
}

func (d *DB) ping() error {
	ctx, cancel := context.WithTimeout(d.base, pingTimeout)
	defer cancel()
	return d.client.Ping(ctx).Err()
}

// tryWrite checks the server with a write. A full server and a read-only one answer a
// ping as if nothing were wrong.
func (d *DB) tryWrite() error {
	ctx, cancel := context.WithTimeout(d.base, pingTimeout)
	defer cancel()
	return d.client.Set(ctx, Key("probe"), "1", time.Second).Err()
}

// watch checks the server after a call that seemed to hang, and while it is down.
func (d *DB) watch() {
	for {
		select {
		case <-d.base.Done():
			return
		case <-d.failed:
		}
		if d.down.Load() == nil {
			if err := d.ping(); err != nil {
				d.fail(err)
			}
		}
		for down := d.down.Load(); down != nil; down = d.down.Load() {
			pause := pingEvery
			if down.Full {
				pause = roomEvery
			}
			select {
			case <-d.base.Done():
				return
			case <-time.After(pause):
			}
			if err := d.tryWrite(); err != nil {
				d.fail(err) // it may be of another kind by now
				continue
			}
			now := time.Now()
			if before := d.back.Swap(&recovery{now, down.Since}); before == nil || now.Sub(before.at) > sameOutage {
				d.log.Info("redis can be used again", "after", now.Sub(down.Since).Round(time.Millisecond).String())
			}
			d.ahead.Store(nil) // it may be another server
			d.down.Store(nil)
		}
	}
}

// Async queues calls that nobody waits for. They are made in order, many in one
// pipeline, so that f cannot use their results. They are lost while the server is down,
// or when the queue is full.
func (d *DB) Async(f func(context.Context, Cmdable)) {
	select {
	case d.queue <- f:
	default:
	}
}

// together bounds the queued calls of one pipeline.
const together = 256

func (d *DB) write() {
	for {
		select {
		case f := <-d.queue:
			d.flush(f)
			continue
		case <-d.base.Done():
		}
		select {
		case f := <-d.queue:
			d.flush(f)
		default:
			return
		}
	}
}

// flush makes a call, and those that are queued behind it, in one pipeline.
func (d *DB) flush(f func(context.Context, Cmdable)) {
	err := d.Do(context.Background(), func(ctx context.Context, c Cmdable) error {
		p := c.Pipeline()
		for n := 0; f != nil && n < together; n++ {
			f(ctx, p)
			select {
			case f = <-d.queue:
			default:
				f = nil
			}
		}
		if f != nil {
			f(ctx, p) // the loop took it from the queue before it ended
		}
		_, err := p.Exec(ctx)
		return err
	})
	if err != nil && !errors.Is(err, ErrDown) {
		d.log.Warn("something cannot be kept in redis", "error", err)
	}
}

// Script is a program that the server runs as one step.
type Script = goredis.Script

// NewScript makes a Script of its source.
func NewScript(source string) *Script { return goredis.NewScript(source) }
