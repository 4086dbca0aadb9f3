//go:build unix

// Package postgrestest owns the Postgres servers of tests, each in a temporary directory. A test
// is skipped if the machine has no Postgres. It must not know the tables of the proxy, and imports
// none of our packages.
package postgrestest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Password is that of the server's only user.
const Password = "secret-of-tests"

// Server is a Postgres server on a loopback port.
type Server struct {
	Port int
	dir  string
	bin  string
	end  io.Closer // its close stops the server

	mu        sync.Mutex
	databases int
}

var (
	common     *Server
	commonOnce sync.Once
)

// Database returns the URL of a new database on the server of this package's tests. TestMain
// must call Stop at the end.
func Database(t testing.TB) string {
	t.Helper()
	commonOnce.Do(func() {
		dir, err := os.MkdirTemp(openDir(), "postgres-")
		if err != nil {
			t.Fatal(err)
		}
		common = start(t, dir)
	})
	if common == nil {
		t.Skip("no Postgres server was started")
	}
	return common.Database(t)
}

// Stop stops the server of Database.
func Stop() {
	if common != nil {
		common.stop()
		_ = os.RemoveAll(filepath.Dir(common.dir))
	}
}

// Start starts a server of its own for a test, which may kill it, with further settings.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp(openDir(), "postgres-")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, dir, settings...)
	t.Cleanup(func() {
		s.stop()
		_ = os.RemoveAll(dir)
	})
	return s
}

// openDir returns a directory for temporary files that other users can enter, or "" for the default.
func openDir() string {
	for _, dir := range []string{"/dev/shm", "/tmp"} {
		if info, err := os.Stat(dir); err == nil && info.Mode()&os.ModeSticky != 0 && os.Geteuid() == 0 {
			return dir
		}
	}
	return ""
}

// binDir returns the directory of initdb and postgres. Without one it skips the test, or fails it
// if POSTGRES_REQUIRED is set.
func binDir(t testing.TB) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if p, err := exec.LookPath("initdb"); err == nil {
		found = append(found, p)
	}
	for _, p := range found {
		if _, err := os.Stat(filepath.Join(filepath.Dir(p), "postgres")); err == nil {
			return filepath.Dir(p)
		}
	}
	const missing = "no Postgres on this machine: initdb is neither in PATH nor in /usr/lib/postgresql"
	if os.Getenv("POSTGRES_REQUIRED") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

func start(t testing.TB, dir string, settings ...string) *Server {
	t.Helper()
	s := &Server{dir: filepath.Join(dir, "data"), bin: binDir(t)}
	pw := filepath.Join(dir, "password")
	if err := os.WriteFile(pw, []byte(Password), 0o644); err != nil { // #nosec G306 -- the server's user reads it
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { // #nosec G302 -- the server's user writes it
		t.Fatal(err)
	}
	init := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.dir, "-U", "graphiti", "-A", "scram-sha-256", "--pwfile="+pw, "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C") // #nosec G204
	init.Dir = dir
	asOther(init)
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Port = l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.Begin(t, settings...)
	return s
}

// Begin starts the server again after Kill. A shell stops it if this process ends.
func (s *Server) Begin(t testing.TB, settings ...string) {
	t.Helper()
	args := []string{"-c", `"$0" "$@" & p=$!; read x; kill -QUIT $p 2>/dev/null; wait $p`, filepath.Join(s.bin, "postgres"), "-D", s.dir, "-p", strconv.Itoa(s.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=60", "-c", "shared_buffers=32MB", "-c", "deadlock_timeout=200ms"}
	for _, setting := range append([]string{"fsync=off"}, settings...) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command("/bin/sh", args...) // #nosec G204
	cmd.Dir = s.dir
	asOther(cmd)
	log, err := os.Create(filepath.Join(filepath.Dir(s.dir), "log")) // a buffer would need a goroutine
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.end = closer(func() error {
		_ = in.Close()
		return cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			_ = c.Close(ctx)
			cancel()
			return
		}
		cancel()
		said, _ := os.ReadFile(log.Name())
		if strings.Contains(string(said), "shared memory block") { // a killed process has not ended yet
			s.stop()
			time.Sleep(50 * time.Millisecond)
			s.Begin(t, settings...)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Postgres does not start: %v\n%s", err, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type closer func() error

func (c closer) Close() error { return c() }

func (s *Server) stop() { _ = s.end.Close() }

// URL returns the URL of a database.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://graphiti:%s@127.0.0.1:%d/%s?sslmode=disable", Password, s.Port, database)
}

// Database creates an empty database and returns its URL.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.databases++
	name := fmt.Sprintf("test%d", s.databases)
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return s.URL(name)
}

// Exec runs statements in a database.
func (s *Server) Exec(t testing.TB, database, statements string) {
	t.Helper()
	Exec(t, s.URL(database), statements)
}

// Exec runs statements in the database of a URL.
func Exec(t testing.TB, url, statements string) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, statements); err != nil {
		t.Fatal(err)
	}
}

// Count returns the result of a query for a number.
func Count(t testing.TB, url, query string) (n int) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.QueryRow(ctx, query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// pids returns the process of the server and its children.
func (s *Server) pids(t testing.TB) []int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	main, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{main}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", main))
	for _, l := range lists {
		b, _ := os.ReadFile(l) // #nosec G304
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	for _, pid := range s.pids(t) {
		_ = syscall.Kill(pid, sig)
	}
}

// Kill ends the server at once.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGKILL)
	s.stop()
	_ = os.Remove(filepath.Join(s.dir, "postmaster.pid"))
}

// Freeze stops all processes of the server until Thaw.
func (s *Server) Freeze(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Thaw ends Freeze.
func (s *Server) Thaw(t testing.TB) { s.signal(t, syscall.SIGCONT) }
