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

// ErrDown is the error of calls during an outage: from the first failure until a check of
// the server succeeds.
var ErrDown = errors.New("redis is unusable; start it, give it memory, or correct state.redis_url")

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
	// prefix begins every key. Its number changes when older versions of the proxy cannot
	// read the data of newer ones.
	prefix = "graphiti-proxy:2:"

	dialTimeout = 500 * time.Millisecond
	callTimeout = time.Second

	// hanging is the duration after which a call that reaches its caller's deadline makes
	// watch check the server.
	hanging = 50 * time.Millisecond

	// pingEvery is the interval between checks of a server that is down, and roomEvery that
	// of a full one. pingTimeout is the timeout of a check.
	pingEvery   = 100 * time.Millisecond
	roomEvery   = time.Second
	pingTimeout = 500 * time.Millisecond

	// sameOutage is the time after an outage in which a failure continues it.
	sameOutage = 10 * time.Second

	// settle is the time after an outage in which other replicas may still consider the
	// server down.
	settle = time.Second

	// queued bounds the waiting calls of Async.
	queued = 4096
)

// quiet turns off the log of the library: its calls return their errors, and the proxy logs
// each outage once.
var quiet sync.Once

// Down is an outage. A full server still serves the calls of Ease.
type Down struct {
	Since time.Time
	Why   string // the error that started it
	Full  bool   // the server answers, but has no room for a write
}

// recovery is the end (at) and the start (since) of an outage.
type recovery struct{ at, since time.Time }

// DB is the connection to the server that replicas share. It is safe for concurrent
// use.
type DB struct {
	log    *slog.Logger
	client *goredis.Client
	down   atomic.Pointer[Down]
	back   atomic.Pointer[recovery]      // last outage, or nil
	ahead  atomic.Pointer[time.Duration] // the server's clock minus ours; nil if unknown
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
	o.MaxRetries = 1 // for connections from before a restart of the server
	o.DialerRetries = 1
	o.ClientName = "graphiti-proxy"
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	quiet.Do(logging.Disable)
	d := &DB{
		log: log, client: goredis.NewClient(o),
		failed: make(chan struct{}, 1), // one signal is enough
		queue:  make(chan func(context.Context, Cmdable), queued),
	}
	d.base, d.cancel = context.WithCancel(context.Background())
	// Both end when Close cancels base.
	d.wg.Go(d.watch)
	d.wg.Go(d.write)
	return d, nil
}

// Parse parses the URL of a server. Its error does not quote the URL.
func Parse(url string) (*goredis.Options, error) {
	o, err := goredis.ParseURL(url)
	if err != nil { // err may quote a password
		return nil, errors.New("not an address of Redis; write e.g. redis://:password@127.0.0.1:6379/0, or rediss:// for TLS")
	}
	return o, nil
}

// Close makes the waiting calls of Async and closes the connections.
func (d *DB) Close() error {
	d.cancel()
	d.wg.Wait()
	return d.client.Close()
}

// Key returns a key: the prefix and the parts, separated by colons.
func Key(parts ...string) string { return prefix + strings.Join(parts, ":") }

// Down returns the current outage of the server, or nil.
func (d *DB) Down() *Down { return d.down.Load() }

// Settled reports whether the server has been up for long enough that the other replicas use
// it too. Until then they would not read new data.
func (d *DB) Settled() bool {
	back := d.back.Load()
	return d.down.Load() == nil && (back == nil || time.Since(back.at) > settle)
}

// Do runs f, which makes calls, for at most callTimeout. While the server is down or full,
// it returns ErrDown without running f.
func (d *DB) Do(ctx context.Context, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, callTimeout, false, f)
}

// wait is Do for calls in which the server itself waits for up to most.
func (d *DB) wait(ctx context.Context, most time.Duration, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, most+callTimeout, false, f)
}

// Ease is Do for calls that need no additional room on the server, because they only read,
// delete, or write after a deletion. A full server serves them too.
func (d *DB) Ease(ctx context.Context, f func(context.Context, Cmdable) error) error {
	return d.do(ctx, callTimeout, true, f)
}

// EaseWait is Ease for calls in which the server itself waits for up to most.
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

// At converts a time of our clock to the server's clock, as the deadline of a script: after
// a hang, the server may run the script when its caller has already given up.
func (d *DB) At(ctx context.Context, t time.Time) (time.Time, error) {
	ahead := d.ahead.Load()
	if ahead == nil {
		err := d.Do(ctx, func(ctx context.Context, c Cmdable) error {
			there, err := c.Time(ctx).Result()
			if err != nil {
				return err
			}
			// A slow answer or connection makes this smaller than the true
			// difference, never larger: deadlines are early rather than late.
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

// useless lists the error codes of an unusable server. full is the error code of a full one
// (https://redis.io/docs/latest/develop/reference/eviction/).
var useless = []string{"LOADING", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "WRONGPASS", "NOPERM"}

const full = "OOM"

// unreachable reports whether an error means that the server is unreachable, unusable or
// full. The refusal of a single call is not such an error.
func unreachable(err error) bool {
	var answer goredis.Error
	if !errors.As(err, &answer) {
		return !errors.Is(err, context.Canceled)
	}
	return says(answer, full) || slices.ContainsFunc(useless, func(code string) bool { return says(answer, code) })
}

// says reports whether an error has a code. Before Redis 7, the error of a script quotes the
// error of the failed call.
func says(answer error, code string) bool {
	text := answer.Error()
	return strings.HasPrefix(text, code) || strings.HasPrefix(text, "ERR Error running script") && strings.Contains(text, " -"+code+" ")
}

// fail marks the server as down and logs the start of an outage. A failure within sameOutage
// after an outage continues that outage.
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
		d.log.Warn("redis is full: chats continue without new memories, and turns wait in the local spool until delivery frees memory", "error", err)
	default:
		d.log.Warn("redis is unusable: chats continue without new memories, and turns wait in the local spool", "error", err)
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

// tryWrite checks the server with a write: full and read-only servers still answer a ping.
func (d *DB) tryWrite() error {
	ctx, cancel := context.WithTimeout(d.base, pingTimeout)
	defer cancel()
	return d.client.Set(ctx, Key("probe"), "1", time.Second).Err()
}

// watch checks the server after a call that may have hung, and during an outage.
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
				d.fail(err) // the kind of the outage may change
				continue
			}
			now := time.Now()
			if before := d.back.Swap(&recovery{now, down.Since}); before == nil || now.Sub(before.at) > sameOutage {
				d.log.Info("redis is usable again", "after", now.Sub(down.Since).Round(time.Millisecond).String())
			}
			d.ahead.Store(nil) // it may be another server
			d.down.Store(nil)
		}
	}
}

// Async queues calls and returns at once. The calls are made in order, many in one pipeline,
// so f cannot use their results. They are lost if the server is down or the queue is full.
func (d *DB) Async(f func(context.Context, Cmdable)) {
	select {
	case d.queue <- f:
	default:
	}
}

// together bounds the queued calls in one pipeline.
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

// flush makes a call and the next queued calls in one pipeline.
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
			f(ctx, p) // taken from the queue in the last step of the loop
		}
		_, err := p.Exec(ctx)
		return err
	})
	if err != nil && !errors.Is(err, ErrDown) {
		d.log.Warn("write to redis failed", "error", err)
	}
}

// Script is a program that the server runs atomically.
type Script = goredis.Script

// NewScript returns the Script with this source.
func NewScript(source string) *Script { return goredis.NewScript(source) }
