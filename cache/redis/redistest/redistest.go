// Package redistest owns a Redis server for tests: redis-server if that is installed, else
// miniredis. It must not know the meaning of the data, and must not be linked into the
// binary.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Redis is a server on its own port. Only one goroutine may use it.
type Redis struct {
	t    testing.TB
	addr string
	dir  string
	real *exec.Cmd
	mini *miniredis.Miniredis
}

// Start starts a server. It ends with the test.
func Start(t testing.TB) *Redis {
	t.Helper()
	logging.Disable() // some tests stop the server on purpose
	s := &Redis{t: t, dir: t.TempDir()}
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REDIS_REQUIRED") != "" {
			t.Fatal("redis-server is not installed")
		}
		s.mini = miniredis.RunT(t)
		s.addr = s.mini.Addr()
		s.passTime()
		return s
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	_ = l.Close()
	t.Cleanup(s.Kill)
	s.Up()
	return s
}

// passTime advances the clock of miniredis, which does not advance by itself: keys would
// never expire.
func (s *Redis) passTime() {
	const tick = 100 * time.Millisecond
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(tick):
				s.mini.FastForward(tick)
			}
		}
	}()
	s.t.Cleanup(func() { close(stop); <-done })
}

// URL returns the server's URL.
func (s *Redis) URL() string { return "redis://" + s.addr + "/0" }

// Up starts the server again, with its data, and waits until it answers.
func (s *Redis) Up() {
	s.t.Helper()
	if s.mini != nil {
		if err := s.mini.Restart(); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	_, port, _ := net.SplitHostPort(s.addr)
	s.real = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir, // #nosec G204 -- a test's own
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--loglevel", "warning")
	if err := s.real.Start(); err != nil {
		s.t.Fatal(err)
	}
	c := s.Client()
	defer c.Close() //nolint:errcheck // a test's
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err := c.Ping(context.Background()).Err(); err == nil {
			return
		} else if time.Now().After(end) {
			s.t.Fatal(fmt.Errorf("redis does not come up: %w", err))
		}
	}
}

// Kill ends the server at once, like kill -9.
func (s *Redis) Kill() {
	if s.mini != nil {
		s.mini.Close()
	} else if s.real != nil {
		_ = s.real.Process.Kill()
		_ = s.real.Wait()
		s.real = nil
	}
}

// Client returns a client of the server.
func (s *Redis) Client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: s.addr, DialerRetries: 1})
}
