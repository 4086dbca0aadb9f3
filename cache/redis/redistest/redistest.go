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
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
)

// Redis is a server on its own port. Only one goroutine may use it.
type Redis struct {
	t     testing.TB
	addr  string
	dir   string
	real  *exec.Cmd
	ended chan struct{} // closed when real has ended
	mini  *miniredis.Miniredis
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
	t.Cleanup(s.Kill)
	for {
		s.addr = freeAddress(t)
		if s.up() {
			return s
		}
		s.Kill() // another process has taken the port
	}
}

// freeAddress returns a loopback address that was free a moment ago.
func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	return l.Addr().String()
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
	if !s.up() {
		s.t.Fatal("another process has taken the port of redis")
	}
}

// up starts redis-server and waits until it answers. It returns false if another server
// answers instead, or the new one ends because it cannot have the port.
func (s *Redis) up() bool {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir, // #nosec G204 -- a test's own
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--loglevel", "warning")
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.real, s.ended = cmd, make(chan struct{})
	go func(ended chan<- struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(s.ended)
	c := s.Client()
	defer c.Close() //nolint:errcheck // a test's
	own := fmt.Sprintf("process_id:%d\r\n", cmd.Process.Pid)
	for end := time.Now().Add(polltest.Patience); ; {
		info, err := c.Info(context.Background(), "server").Result()
		switch {
		case err == nil:
			return strings.Contains(info, own)
		case time.Now().After(end):
			s.t.Fatal(fmt.Errorf("redis does not come up: %w", err))
		}
		select {
		case <-s.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server at once, like kill -9.
func (s *Redis) Kill() {
	if s.mini != nil {
		s.mini.Close()
	} else if s.real != nil {
		_ = s.real.Process.Kill()
		<-s.ended
		s.real = nil
	}
}

// Client returns a client of the server.
func (s *Redis) Client() *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: s.addr, DialerRetries: 1})
}
