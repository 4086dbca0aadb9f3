package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

const (
	connections    = 8
	connectTimeout = time.Second

	// pollEvery is the interval between polls, and retryEvery that of attempts during an
	// outage. pollTimeout bounds each: a busy server must not count as one that hangs. Requests
	// have deadlines of their own.
	pollEvery   = 200 * time.Millisecond
	retryEvery  = 100 * time.Millisecond
	pollTimeout = 2 * time.Second

	// roomEvery is the interval of attempts while the server is full: small writes may succeed.
	roomEvery = time.Second

	// sameOutage is the time after an outage in which a failure continues it.
	sameOutage = 10 * time.Second

	// settle is the time after an outage in which other replicas may still see it.
	settle = time.Second
)

// Options configures a Server.
type Options struct {
	URL    string
	Latest func() string // returns an address with the current user and password; nil means URL
	Name   string        // of this process
	Steps  []string      // of the schema: each later one only adds columns and tables
	Log    *slog.Logger
}

// Server is the connection to the Postgres that replicas share. It is safe for concurrent use.
type Server struct {
	*dialect
	name  string
	steps []string
	log   *slog.Logger
	pool  *pgxpool.Pool
	sql   *sql.DB   // on pool
	own   *pgx.Conn // of the watch; nil during an outage

	era    atomic.Pointer[era]
	back   atomic.Pointer[recovery] // last outage, or nil
	failed chan struct{}            // wakes the watch

	token    atomic.Int64 // of the lease when this process took it
	applied  atomic.Int64 // changes that this process has applied
	seen     time.Time    // time of the last sign of life; only the watch uses it
	ahead    atomic.Int64 // the server's clock minus ours, in nanoseconds, at the last poll
	onChange atomic.Pointer[func(context.Context) error]

	base   context.Context
	cancel context.CancelFunc
	parts  sync.WaitGroup
}

// era is a time in which the server is usable, or is not. It is immutable.
type era struct {
	ctx   context.Context // of the calls; ends with the era
	end   context.CancelFunc
	fault *database.Fault // nil if the server is usable
}

// recovery is the end (at) and the start (since) of an outage.
type recovery struct{ at, since time.Time }

// Open connects to a server, and prepares its schema. Its error is a Fault.
func Open(o Options) (*Server, error) {
	cfg, err := parse(o.URL)
	if err != nil {
		return nil, &database.Fault{Path: setting, Kind: database.Denied, Since: time.Now(), Err: err, Remedy: wellFormed}
	}
	cfg.MaxConns = connections
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.BeforeConnect = o.login
	s := &Server{dialect: dialectOf(o.Steps), name: o.Name + " " + rand.Text()[:8], steps: o.Steps, log: o.Log, failed: make(chan struct{}, 1)}
	s.base, s.cancel = context.WithCancel(context.Background())
	if s.pool, err = pgxpool.NewWithConfig(s.base, cfg); err != nil {
		s.cancel()
		return nil, faultOf(err)
	}
	s.sql = stdlib.OpenDBFromPool(s.pool)
	if err := s.connect(); err != nil {
		s.cancel()
		s.closeAll()
		return nil, faultOf(err)
	}
	s.become(nil)
	s.parts.Go(s.watch) // ends with Close
	return s, nil
}

// login sets the user and the password of a new connection.
func (o *Options) login(_ context.Context, c *pgx.ConnConfig) error {
	if o.Latest != nil {
		if fresh, err := parse(o.Latest()); err == nil {
			c.User, c.Password = fresh.ConnConfig.User, fresh.ConnConfig.Password
		}
	}
	return nil
}

// parse parses the URL of a server. Its error does not quote the URL.
func parse(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil { // err may quote a password
		return nil, errors.New("not an address of Postgres")
	}
	return cfg, nil
}

// Close ends the calls and closes the connections.
func (s *Server) Close() error {
	s.cancel()
	s.parts.Wait()
	s.leave()
	s.closeAll()
	return nil
}

func (s *Server) closeAll() {
	_ = s.sql.Close()
	s.pool.Close()
	s.drop()
}

// drop closes the connection of the watch.
func (s *Server) drop() {
	if s.own != nil {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
		defer cancel()
		_ = s.own.Close(ctx)
		s.own = nil
	}
}

// become begins an era.
func (s *Server) become(fault *database.Fault) {
	e := &era{fault: fault}
	e.ctx, e.end = context.WithCancel(s.base)
	if before := s.era.Swap(e); before != nil {
		before.end()
	}
}

// Fault returns the current outage, or nil.
func (s *Server) Fault() *database.Fault { return s.era.Load().fault }

// Check returns the current outage, or nil: the watch tests the server all the time.
func (s *Server) Check() *database.Fault { return s.Fault() }

// Settled reports whether the server has been usable for long enough that the other replicas use
// it too. Until then they would not read new data.
func (s *Server) Settled() bool {
	back := s.back.Load()
	return s.Fault() == nil && (back == nil || time.Since(back.at) > settle)
}

// At converts a time of our clock to the server's clock, as a deadline within a statement: after a
// hang, the server may run it when its caller has given up. It is early rather than late, because
// a slow answer makes the difference smaller.
func (s *Server) At(t time.Time) time.Time { return t.Add(time.Duration(s.ahead.Load())) }

// do runs a call, until the end of the era.
func (s *Server) do(ctx context.Context, f func(context.Context) error) error {
	e := s.era.Load()
	if e.fault != nil {
		return e.fault
	}
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := f(bounded)
	switch {
	case err == nil || errors.Is(err, sql.ErrNoRows):
	case s.base.Err() != nil:
		return database.ErrClosed
	case e.ctx.Err() != nil: // another call has ended the era, and the outage may be over
		return cmp.Or(s.Fault(), faultOf(err))
	case ctx.Err() == nil && unusable(err):
		s.fail(faultOf(err))
		if fault := s.Fault(); fault != nil {
			return fault
		}
	}
	return err
}

// fail begins an outage and logs it. A failure within sameOutage after an outage continues that
// outage.
func (s *Server) fail(f *database.Fault) {
	if s.base.Err() != nil {
		return
	}
	before := s.Fault()
	if before != nil && before.Kind == f.Kind {
		return
	}
	again := before != nil
	if back := s.back.Load(); back != nil && time.Since(back.at) < sameOutage {
		f.Since, again = back.since, true
	}
	s.become(f)
	s.pool.Reset()
	if !again {
		s.log.Warn("Postgres is unusable: chats continue without new memories, and turns wait in data_dir", "error", f.What(), "to_do", f.Remedy)
	}
	select {
	case s.failed <- struct{}{}:
	default:
	}
}

// watch polls the server, and tries to connect again during an outage.
func (s *Server) watch() {
	for {
		pause := pollEvery
		if f := s.Fault(); f != nil && f.Remedy == remedies[full] {
			pause = roomEvery
		} else if f != nil {
			pause = retryEvery
		}
		select {
		case <-s.base.Done():
			return
		case <-s.failed:
			continue // with the pause of an outage
		case <-time.After(pause):
		}
		fault := s.Fault()
		if fault == nil {
			if err := s.poll(); err != nil {
				s.drop()
				s.fail(faultOf(err))
			}
			continue
		}
		s.drop()
		if err := s.connect(); err != nil {
			s.fail(faultOf(err))
			continue
		}
		now := time.Now()
		if before := s.back.Swap(&recovery{now, fault.Since}); before == nil || now.Sub(before.at) > sameOutage {
			s.log.Info("Postgres is usable again", "after", now.Sub(fault.Since).Round(time.Millisecond).String())
		}
		s.become(nil)
	}
}

// connect connects the watch, prepares the schema and tests a write.
func (s *Server) connect() error {
	ctx, cancel := context.WithTimeout(s.base, 2*connectTimeout)
	defer cancel()
	cfg := s.pool.Config()
	_ = cfg.BeforeConnect(ctx, cfg.ConnConfig) // login, which returns no error
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return err
	}
	s.own = conn
	if err = s.migrate(ctx, conn); err == nil {
		err = s.clock(ctx, conn)
	}
	if err == nil {
		err = s.live(ctx, conn)
	}
	if err != nil {
		s.drop()
	}
	return err
}

// clock compares the server's clock with ours.
func (s *Server) clock(ctx context.Context, conn *pgx.Conn) error {
	var now time.Time
	err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	s.ahead.Store(int64(time.Until(now)))
	return err
}
