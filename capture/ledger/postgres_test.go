package ledger

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) {
	code := m.Run()
	postgrestest.Stop()
	os.Exit(postgrestest.Again(code))
}

// openAny opens an empty ledger.
func openAny(t *testing.T) (*Ledger, error) {
	t.Helper()
	if !postgrestest.Chosen(t) {
		return Open(filepath.Join(t.TempDir(), "spool.db"))
	}
	s, err := postgres.Open(postgres.Options{URL: postgrestest.Database(t), Name: rand.Text(), Steps: []string{PostgresSchema}, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	if _, _, err := s.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &Ledger{db: s.DB(false), worth: func(*Turn) bool { return true }, memory: &shelf{db: s.DB(false)}, say: saying}, nil
}

// TestDelivery_LostLease checks that the writes of a process without its lease, such as a frozen one,
// are refused after another process held the lease.
func TestDelivery_LostLease(t *testing.T) {
	url := postgrestest.Database(t)
	open := func(name string) (*postgres.Server, *Ledger) {
		s, err := postgres.Open(postgres.Options{URL: url, Name: name, Steps: []string{PostgresSchema}, Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s, &Ledger{db: s.DB(false), worth: func(*Turn) bool { return true }, memory: &shelf{db: s.DB(false)}, say: saying}
	}
	a, first := open("a")
	b, second := open("b")
	ctx, frozen := context.WithCancel(t.Context())
	defer frozen()
	led, _, err := a.Take(ctx)
	must(t, err)
	var turns []Turn
	for i := range 2 {
		turns = append(turns, Turn{ID: fmt.Sprint(i), User: "u", Said: time.Now(), Targets: []graphiti.Target{{Group: "g"}}})
	}
	must(t, helptest.ErrorOf(first.Add(ctx, turns, time.Now())))
	list, err := first.Next(ctx, "g", 2)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v %v, want two copies", list, err)
	}
	if ok, err := first.MarkSent(&list[0]); !ok || err != nil {
		t.Fatal(ok, err)
	}
	postgrestest.Exec(t, url, "UPDATE graphiti_proxy.lease SET until = 'epoch'") // as after a long freeze
	_, release, err := b.Take(ctx)
	must(t, err)
	withdrawn := []Withdrawn{{ID: 1}}
	unread := Unread{Group: "g", Episode: graphiti.Row{Key: "k"}}
	state := func() (rows []string) {
		for _, query := range []string{"SELECT turn || state || sent || losses FROM turns ORDER BY seq", "SELECT '' || id FROM withdrawn", "SELECT key || tries FROM unread"} {
			if err := second.db.Each(t.Context(), query, nil, func(scan func(...any) error) error {
				var row string
				err := scan(&row)
				rows = append(rows, row)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		return rows
	}
	postgrestest.Exec(t, url, "INSERT INTO graphiti_proxy.withdrawn (id, grp, session, turn, message, sent, at) OVERRIDING SYSTEM VALUE VALUES (1, 'g', '', '', '', 0, 0)")
	must(t, first.AddUnread([]Unread{unread}))
	before := state()
	for _, when := range []string{"while another has the lease", "after its release"} {
		for name, write := range map[string]func() error{
			"MarkSent":      func() error { _, err := first.MarkSent(&list[1]); return err },
			"Requeue":       func() error { return first.Requeue(&list[0], "") },
			"MarkDelivered": func() error { return first.MarkDelivered(&list[0], true) },
			"MarkDead":      func() error { return first.MarkDead(&list[0], "") },
			"Settle":        func() error { return first.Settle(withdrawn) },
			"Read":          func() error { return first.Read(&unread, true) },
			"failed Read":   func() error { return first.Read(&unread, false) },
		} {
			if err := write(); err == nil {
				t.Errorf("%s: %s succeeds", when, name)
			}
		}
		if got := state(); !slices.Equal(got, before) {
			t.Errorf("%s: got %q, want %q", when, got, before)
		}
		release()
	}
	<-led.Done() // a lease that another process held is not renewed
	if err := second.MarkDelivered(&list[0], true); err != nil {
		t.Errorf("the last holder: %v", err)
	}
	if _, _, err := a.Take(t.Context()); err != nil || first.MarkDelivered(&list[1], true) != nil {
		t.Errorf("got %v, want that a new lease delivers", err)
	}
}
