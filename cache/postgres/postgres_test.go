package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		postgrestest.Stop()
		os.Exit(code)
	}))
}

const things = "CREATE TABLE things (list text NOT NULL, key bytea NOT NULL, n bigint NOT NULL, PRIMARY KEY (list, key));"

func options(url, name string) Options {
	return Options{URL: url, Name: name, Steps: []string{things}, Log: slog.New(slog.DiscardHandler)}
}

func open(t *testing.T, url, name string) *Server {
	t.Helper()
	s, err := Open(options(url, name))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func put(key string, n int) func(*database.Tx) error {
	return func(tx *database.Tx) error {
		_, err := tx.Exec("INSERT INTO things VALUES ('', ?, ?)", []byte(key), n)
		return err
	}
}

func count(t *testing.T, d *DB) (n int) {
	t.Helper()
	must(t, d.QueryRow(t.Context(), "SELECT count(*) FROM things", nil, &n))
	return n
}

func TestTranslation(t *testing.T) {
	d := dialectOf([]string{"CREATE TABLE turns (", "CREATE TABLE messages ("})
	for _, tc := range []struct{ from, to string }{
		{"SELECT '?' FROM turns WHERE a = ? AND b = ?2 AND c = ?", "SELECT '?' FROM graphiti_proxy.turns WHERE a = $1 AND b = $2 AND c = $3"},
		{"INSERT INTO turns SELECT ?1, ?1 FROM others", "INSERT INTO graphiti_proxy.turns SELECT $1, $1 FROM others"},
		{"SELECT m.id FROM json_each(?2) j CROSS JOIN messages m ON m.name = j.value ORDER BY j.key",
			"SELECT m.id FROM jsonb_array_elements_text($2::jsonb) WITH ORDINALITY AS j(value, key) JOIN graphiti_proxy.messages m ON m.name = j.value ORDER BY j.key"},
		{"a IN (SELECT value FROM json_each(?))", "a IN (SELECT value FROM jsonb_array_elements_text($1::jsonb))"},
		{"instr(scopes, ?) > 0 AND text = ?2 COLLATE NOCASE", "strpos(scopes, $1) > 0 AND lower(text) = lower($2)"},
		{"UPDATE turns SET a = 1 ON CONFLICT DO UPDATE SET b = 2", "UPDATE graphiti_proxy.turns SET a = 1 ON CONFLICT DO UPDATE SET b = 2"},
	} {
		for range 2 {
			if got := d.translate(tc.from); got != tc.to {
				t.Errorf("translate(%q) =\n%s, want\n%s", tc.from, got, tc.to)
			}
		}
	}
}

func TestWrites(t *testing.T) {
	s := open(t, postgrestest.Database(t), "a")
	d, ctx := s.DB(false), t.Context()
	committed := 0
	refused := errors.New("refused")
	for _, tc := range []struct {
		name string
		fn   func(*database.Tx) error
		fail bool
		rows int
	}{
		{"commit", put("a", 1), false, 1},
		{"error", func(tx *database.Tx) error { return errors.Join(put("b", 1)(tx), refused) }, true, 1},
		{"panic", func(tx *database.Tx) error { _ = put("b", 1)(tx); panic("bug") }, true, 1},
		{"conflict", put("a", 2), true, 1},
		{"text that Postgres cannot hold", func(tx *database.Tx) error {
			_, err := tx.Exec("INSERT INTO things VALUES (?, ?, 1)", "a\x00b\xff", []byte{0})
			return err
		}, false, 2},
	} {
		err := d.Write(ctx, func(tx *database.Tx) error {
			tx.Committed(func() { committed++ })
			return tc.fn(tx)
		})
		if tc.fail != (err != nil) || count(t, d) != tc.rows {
			t.Errorf("%s: error %v, %d rows; want an error: %v, %d rows", tc.name, err, count(t, d), tc.fail, tc.rows)
		}
		if s.Fault() != nil {
			t.Fatalf("%s: %v", tc.name, s.Fault())
		}
	}
	if committed != 2 {
		t.Errorf("%d functions called after commits, want 2", committed)
	}
	done := make(chan struct{})
	d.WriteAsync(put("a", 3), func() {}) // fails, and undoes no other
	d.WriteAsync(put("c", 3), func() { close(done) })
	<-done
	if n := count(t, d); n != 3 {
		t.Errorf("%d rows after WriteAsync, want 3", n)
	}
}

// TestAlone checks that a write either has committed before Alone, or reads its rows.
func TestAlone(t *testing.T) {
	url := postgrestest.Database(t)
	a, b := open(t, url, "a").DB(false), open(t, url, "b").DB(true)
	within, leave, done := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		_ = a.Write(t.Context(), func(tx *database.Tx) error {
			err := put("a", 1)(tx)
			close(within)
			<-leave
			return err
		})
	}()
	<-within
	go func() {
		n := -1
		_ = b.Alone(t.Context(), func(tx *database.Tx) error { return tx.QueryRow("SELECT count(*) FROM things").Scan(&n) })
		done <- n
	}()
	close(leave)
	if n := <-done; n != 1 {
		t.Errorf("Alone sees %d rows, want the 1 of the write that was under way", n)
	}
}

// TestFaults checks that each reason for an unusable server is one line with a remedy, and
// without the password.
func TestFaults(t *testing.T) {
	good := postgrestest.Database(t)
	newer := postgrestest.Database(t)
	open(t, newer, "a").Close()
	postgrestest.Exec(t, newer, "UPDATE graphiti_proxy.version SET version = 9, readable_from = 9")
	for _, tc := range []struct {
		name, url, want string
		lasting         bool
	}{
		{"no address", "graphiti secret-of-tests", "write e.g. postgres://user", true},
		{"another port", "postgres://graphiti:secret-of-tests@127.0.0.1:1/x", "start Postgres, or correct state.postgres_url", false},
		{"password", strings.Replace(good, postgrestest.Password, "secret-of-others", 1), "correct the user and the password", false},
		{"database", good[:strings.LastIndex(good, "/")] + "/missing", "create the database", false},
		{"newer schema", newer, "update this proxy", true},
	} {
		_, err := Open(options(tc.url, "b"))
		var f *database.Fault
		if !errors.As(err, &f) || !strings.Contains(err.Error(), tc.want) || f.Lasting() != tc.lasting || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v (%+v); want one line with %q, lasting: %v", tc.name, err, f, tc.want, tc.lasting)
		}
	}
}

// TestRollingUpdate checks that an older program uses the schema of a newer one, until that
// forbids it.
func TestRollingUpdate(t *testing.T) {
	url := postgrestest.Database(t)
	old := open(t, url, "old")
	o := options(url, "new")
	o.Steps = append(o.Steps, "ALTER TABLE things ADD more text")
	newer, err := Open(o)
	must(t, err)
	defer newer.Close()
	must(t, old.DB(false).Write(t.Context(), put("a", 1)))
	open(t, url, "another old one")
	postgrestest.Exec(t, url, "UPDATE graphiti_proxy.version SET readable_from = 2")
	helptest.Until(t, "the old program notices", func() bool { f := old.Fault(); return f != nil && f.Lasting() })
	if f := newer.Fault(); f != nil {
		t.Error(f)
	}
}

// TestAnnounce checks that Announce returns after each other replica has applied the change,
// and does not wait for a dead one.
func TestAnnounce(t *testing.T) {
	url := postgrestest.Database(t)
	a, b := open(t, url, "a"), open(t, url, "b")
	postgrestest.Exec(t, url, "INSERT INTO graphiti_proxy.replicas VALUES ('gone', 0, now() - interval '31 seconds')")
	var calls atomic.Int64
	b.OnChange(func(context.Context) error {
		if calls.Add(1)%2 == 1 {
			return errors.New("not yet")
		}
		return nil
	})
	helptest.Until(t, "the first call", func() bool { return b.applied.Load() == 0 })
	before := calls.Load()
	if err := a.Announce(t.Context()); err != nil || calls.Load() < before+2 {
		t.Errorf("Announce: %v, after %d calls of the other replica, want 2, of which the first fails", err, calls.Load()-before)
	}
}

func TestLease(t *testing.T) {
	url := postgrestest.Database(t)
	a, b := open(t, url, "a"), open(t, url, "b")
	led, release, err := a.Take(t.Context())
	if err != nil || led.Err() != nil {
		t.Fatal(err, led.Err())
	}
	taken := make(chan func())
	go func() {
		_, release, err := b.Take(t.Context())
		if err != nil {
			t.Error(err)
		}
		taken <- release
	}()
	select {
	case <-taken:
		t.Fatal("two replicas hold the lease")
	case <-time.After(100 * time.Millisecond):
	}
	release()
	if led.Err() == nil {
		t.Error("the lease continues after its release")
	}
	(<-taken)()
}

// TestProcessThatHangs checks that a process which hangs in a transaction stops no forget of another
// process.
func TestProcessThatHangs(t *testing.T) {
	url := postgrestest.Database(t)
	hung, other := open(t, url, "a").DB(false), open(t, url, "b").DB(false)
	begun, release := make(chan struct{}), make(chan struct{})
	var holder sync.WaitGroup
	defer holder.Wait()
	defer close(release)
	holder.Go(func() {
		_ = hung.Write(t.Context(), func(tx *database.Tx) error {
			err := put("hung", 1)(tx)
			close(begun)
			<-release
			return err
		})
	})
	<-begun
	must(t, other.Alone(t.Context(), put("forget", 1)))
}

// TestOutage checks that calls fail fast while the server is killed or frozen, and work again
// afterwards.
func TestOutage(t *testing.T) {
	server := postgrestest.Start(t)
	url := server.Database(t)
	s := open(t, url, "a")
	d := s.DB(false)
	for i, tc := range []struct {
		name       string
		begin, end func(testing.TB)
	}{
		{"killed", server.Kill, func(t testing.TB) { server.Begin(t) }},
		{"frozen", server.Freeze, server.Thaw},
		{"read-only", func(t testing.TB) {
			server.Exec(t, "postgres", "ALTER SYSTEM SET default_transaction_read_only = on")
			server.Exec(t, "postgres", "SELECT pg_reload_conf()")
		}, func(t testing.TB) {
			postgrestest.Exec(t, server.URL("postgres")+"&default_transaction_read_only=off", "ALTER SYSTEM RESET default_transaction_read_only")
			server.Exec(t, "postgres", "SELECT pg_reload_conf()")
		}},
	} {
		if err := d.Write(t.Context(), put(fmt.Sprint(i), 1)); err != nil {
			t.Fatal(tc.name, err)
		}
		tc.begin(t)
		start := time.Now()
		var f *database.Fault
		for !errors.As(d.Write(t.Context(), put("no"+fmt.Sprint(i), 1)), &f) {
			if time.Since(start) > 5*time.Second {
				t.Fatalf("%s: no outage", tc.name)
			}
		}
		if took := time.Since(start); took > 4*time.Second || f.Lasting() {
			t.Errorf("%s: a call took %s, with %v", tc.name, took, f)
		}
		start = time.Now()
		if err := d.QueryRow(t.Context(), "SELECT 1", nil, new(int)); err == nil || time.Since(start) > 50*time.Millisecond {
			t.Errorf("%s: a call during the outage took %s, with %v", tc.name, time.Since(start), err)
		}
		tc.end(t)
		helptest.Until(t, tc.name+": the server is usable again", func() bool { return s.Fault() == nil })
		if s.Settled() {
			t.Errorf("%s: settled at once", tc.name)
		}
	}
}

// TestWrite_Undone checks that a write fails with a Fault if others undo or block each attempt: its
// turns then wait for a later one.
func TestWrite_Undone(t *testing.T) {
	db := open(t, postgrestest.Database(t), "a").DB(false)
	for _, code := range []string{"40P01", "40001", "55P03"} {
		err := db.Write(t.Context(), func(*database.Tx) error { return &pgconn.PgError{Code: code, Message: "undone"} })
		var fault *database.Fault
		if !errors.As(err, &fault) || db.Fault() != nil {
			t.Errorf("%s: got %v, and the server's fault %v; want a fault of the write alone", code, err, db.Fault())
		}
	}
}

// TestLogin checks that a new connection has the current user and password, and the server and
// database of the start.
func TestLogin(t *testing.T) {
	t.Parallel()
	for latest, want := range map[string][2]string{
		"postgres://two:new@other:1/elsewhere": {"two", "new"},
		"not an address":                       {"one", "old"},
	} {
		cfg, err := parse("postgres://one:old@server:5432/db")
		must(t, err)
		o := Options{Latest: func() string { return latest }}
		_ = o.login(t.Context(), cfg.ConnConfig) // returns no error
		if c := cfg.ConnConfig; c.User != want[0] || c.Password != want[1] || c.Host != "server" || c.Database != "db" {
			t.Errorf("%s: %s %s %s %s", latest, c.User, c.Password, c.Host, c.Database)
		}
	}
}
