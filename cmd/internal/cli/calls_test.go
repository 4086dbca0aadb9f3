package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

var must = helptest.Must

// TestMain fails if a test leaks a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running starts the admin side of a proxy that owns a data directory, and returns the
// options of its clients.
func running(t *testing.T, host *service.Host, token string) (o ClientOptions, stop func()) {
	t.Helper()
	dir := t.TempDir()
	lock, err := datadir.Acquire(dir, datadir.Proxy)
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	s, err := admin.New(admin.Options{Listen: "127.0.0.1:0", Token: token, Host: host, Metrics: http.NotFoundHandler(), DataDir: dir, Log: log, Audit: log})
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-served, lock.Unlock()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return ClientOptions{Listen: s.Addr().String(), Token: token, DataDir: dir}, stop
}

// never returns an opener of files that fails the test.
func never(t *testing.T) func() (*Runner, error) {
	return func() (*Runner, error) {
		t.Error("files were opened")
		return nil, ErrNoProxy
	}
}

// same runs an operation on the files and through a proxy, and checks that both give the
// same answer.
func same[In, Out any](t *testing.T, at []*Runner, op service.Operation[In, Out], in In) (outs []Out) {
	t.Helper()
	for _, p := range at {
		out, err := Call(t.Context(), p, op, in)
		if err != nil {
			t.Fatalf("%s: %v", op.Name, err)
		}
		outs = append(outs, out)
	}
	b, _ := json.Marshal(outs[0])
	b = ownOf.ReplaceAll(b, nil)
	if through, _ := json.Marshal(outs[1]); !bytes.Equal(b, ownOf.ReplaceAll(through, nil)) {
		t.Errorf("%s: %s on the files, and through a proxy\n%s", op.Name, b, through)
	}
	return outs
}

// ownOf matches the ID and the signed receipt of a change, which each change has of its own.
var ownOf = regexp.MustCompile(`"undo":"[0-9a-f]+",?|,?"receipt":\{"receipt":1,"time":"[^"]+","owner":"user:josh".+?"signature":"[^"]+"\}`)

// TestAnOperationIsTheSameEverywhere checks that each operation, with every field of its
// input, gives the same answer on the files and through a running proxy.
func TestAnOperationIsTheSameEverywhere(t *testing.T) {
	memory := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	memory.Say(t, "josh", "s", "", "My cat is called Miso.")
	memory.Say(t, "josh", "s", "w", "We use Postgres.")
	o, _ := running(t, memory.Host, "secret")
	proxy, err := Find(t.Context(), o, never(t))
	if err != nil || proxy.Says != "using the proxy of "+o.DataDir {
		t.Fatalf("got %v, %v, want the proxy of %s", proxy, err, o.DataDir)
	}
	at := []*Runner{{Host: memory.Host}, proxy}
	own, both := service.Selector{User: "josh"}, service.Selector{Workspace: "w", Own: true}
	same(t, at, service.Status, service.StatusRequest{Fresh: true})
	same(t, at, service.Counts, struct{}{})
	same(t, at, service.Turns, service.TurnsRequest{Condition: ledger.Dead, Group: "user_josh", Limit: 3, Text: true})
	same(t, at, service.Retry, service.Selection{Numbers: []int64{7}})
	same(t, at, service.Drop, service.Selection{All: true})
	same(t, at, service.Show, service.ShowRequest{Selector: both, Last: 3})
	same(t, at, service.List, service.ListRequest{Selector: own, Limit: 1})
	same(t, at, service.Accept, service.Acceptance{ID: "josh", Keep: true})
	if found := same(t, at, service.Search, service.SearchRequest{Selector: both, Query: "What is my cat called?", All: true}); len(found[0].Facts) == 0 {
		t.Error("nothing is found")
	}
	if groups := same(t, at, service.Groups, service.Selector{Session: "s"}); len(groups[0].Parts) != 2 {
		t.Errorf("got %+v, want 2 parts", groups[0])
	}
	same(t, at, service.Promote, service.PromoteRequest{Selector: own, Promotion: service.Promotion{Kind: "decision", Scope: "user", Text: "Tabs."}})
	in := service.ImportRequest{Selector: own, Lines: []service.Line{{Role: "user", Content: "I breed alpacas.", Timestamp: "2026-01-05T10:00:00Z"}}}
	for i, want := range []service.Imported{{Kept: 1}, {Known: 1}} {
		if done, err := Call(t.Context(), at[i], service.Import, in); err != nil || done.Kept != want.Kept || done.Known != want.Known {
			t.Errorf("got %+v, %v, want no error, Kept %d, Known %d", done, err, want.Kept, want.Known)
		}
	}
	memory.Settle(t)
	var exports [2][]service.Record
	for i, p := range at {
		err := Each(t.Context(), p, service.Export, service.Selector{Group: "user_josh", Session: "s", User: "josh"}, func(r service.Record) error {
			exports[i] = append(exports[i], r)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff(exports[0], exports[1]); d != "" || len(exports[0]) != 2 {
		t.Errorf("export: %d records\n%s", len(exports[0]), d)
	}
	same(t, at, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: "user_josh", Session: "s", User: "josh"}})
	for i, p := range at {
		_, err := Call(t.Context(), p, service.Promote, service.PromoteRequest{Promotion: service.Promotion{Kind: "idea", Text: "x"}})
		if err == nil || !strings.HasPrefix(err.Error(), `kind: unknown kind "idea"; write one of `) {
			t.Errorf("place %d refuses with %v", i, err)
		}
		if usage, invalid := (UsageError{}), (service.InvalidError{}); !errors.As(err, &usage) && !errors.As(err, &invalid) {
			t.Errorf("place %d: %v is no wrong usage", i, err)
		}
	}
}

// TestEachEndsEarly checks that Each ends when its callback returns an error, and that it
// returns an error if the proxy reports an interruption or is another program.
func TestEachEndsEarly(t *testing.T) {
	answers := map[string]string{
		"cut":     `{"name":"1"}` + "\n" + `{"name":"2"}` + "\n" + `{"error":"the memory does not answer"}` + "\n",
		"no JSON": `{"name":"1"}` + "\n<html>\n",
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, answers[r.URL.Query().Get("group")])
	}))
	defer s.Close()
	at := &Runner{Proxy: NewClient(ClientOptions{Listen: s.Listener.Addr().String(), ByAddress: true})}
	enough := errors.New("that is enough")
	for _, tc := range []struct {
		group, says string
		most, read  int
	}{
		{"cut", "the memory does not answer", 9, 2},
		{"cut", enough.Error(), 1, 1},
		{"no JSON", "is not graphiti-proxy, or another version", 9, 1},
	} {
		n := 0
		err := Each(t.Context(), at, service.Export, service.Selector{Group: tc.group}, func(service.Record) error {
			if n++; n == tc.most {
				return enough
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), tc.says) || n != tc.read {
			t.Errorf("%s: %d read, %v, want %q", tc.group, n, err, tc.says)
		}
	}
}

// TestFind checks that Find reaches the owner of the data directory or the proxy at an address, and
// that it opens the files only if no proxy may be running.
func TestFind(t *testing.T) {
	host := &service.Host{Counts: func(context.Context) (capture.QueueStatus, error) { return capture.QueueStatus{Pending: 7}, nil }}
	o, stop := running(t, host, "secret")
	free, _ := running(t, host, "")
	with := func(o ClientOptions, change func(*ClientOptions)) ClientOptions {
		change(&o)
		return o
	}
	for name, tc := range map[string]struct {
		o    ClientOptions
		says string // error text, or "" if Find succeeds
	}{
		"by the directory":            {o, ""},
		"at another address":          {with(o, func(o *ClientOptions) { o.Listen = "127.0.0.1:1" }), ""},
		"without the token":           {with(o, func(o *ClientOptions) { o.Token = "" }), ""},
		"by its address":              {with(free, func(o *ClientOptions) { o.ByAddress = true }), ""},
		"by its address, for a token": {with(o, func(o *ClientOptions) { o.ByAddress = true }), "only over TLS"},
		"by its address, tokenless":   {with(o, func(o *ClientOptions) { o.ByAddress, o.Token = true, "" }), "wants admin.token"},
		"the owner of another":        {with(o, func(o *ClientOptions) { o.DataDir = t.TempDir() }), "no proxy answers for data_dir "},
		"nobody, by the address":      {with(free, func(o *ClientOptions) { o.Listen, o.ByAddress = "127.0.0.1:1", true }), "no proxy answers on 127.0.0.1:1"},
		"the admin side is off":       {ClientOptions{Listen: "off", DataDir: t.TempDir()}, "admin.listen is off"},
	} {
		opened := false
		at, err := Find(t.Context(), tc.o, func() (*Runner, error) {
			opened = true
			_, err := FindProxy(t.Context(), tc.o)
			return nil, err
		})
		if err == nil {
			var q capture.QueueStatus
			if q, err = Call(t.Context(), at, service.Counts, struct{}{}); err == nil && q.Pending != 7 {
				t.Errorf("%s: got %+v, want Pending 7", name, q)
			}
		}
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		}
		if want := errors.Is(err, ErrNoProxy) && !tc.o.ByAddress; opened != want {
			t.Errorf("%s: files are opened: %v, want %v", name, opened, want)
		}
	}
	stop()
	place := &Runner{Host: host}
	if at, err := Find(t.Context(), o, func() (*Runner, error) { return place, nil }); err != nil || at != place {
		t.Errorf("of a proxy that does not run: %v, %v", at, err)
	}
}

// TestStatusIsShownToWhoever checks that FindProxyToShow finds a proxy that owns no
// directory and does not send it the token, and that ForwardsTo fails if the status is not
// ready.
func TestStatusIsShownToWhoever(t *testing.T) {
	ready := true
	dir := t.TempDir()
	host := &service.Host{Status: func(context.Context, bool) health.Status {
		return health.Status{Ready: ready, DataDir: dir, Version: "7"}
	}}
	log := slog.New(slog.DiscardHandler)
	s, err := admin.New(admin.Options{Listen: "127.0.0.1:0", Host: host, Metrics: http.NotFoundHandler(), Log: log, Audit: log})
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(s.Shutdown(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	o := ClientOptions{Listen: s.Addr().String(), Token: "secret", DataDir: dir}
	c, err := FindProxyToShow(t.Context(), o)
	must(t, err)
	if st, err := Ask(t.Context(), c, service.Status, service.StatusRequest{}); err != nil || st.Version != "7" {
		t.Errorf("got %+v, %v, want no error, Version \"7\"", st, err)
	}
	if c.o.Token != "" {
		t.Error("it gets the token")
	}
	must(t, ForwardsTo(t.Context(), o))
	ready = false
	if err := ForwardsTo(t.Context(), o); err == nil {
		t.Error("it forwards nothing")
	}
	o.DataDir = filepath.Join(dir, "another")
	if _, err := FindProxyToShow(t.Context(), o); !errors.Is(err, ErrNoProxy) {
		t.Errorf("another's status: %v", err)
	}
}

// TestStrangersGetNothing checks that a program that has taken the address of a proxy receives
// neither the token nor a query.
func TestStrangersGetNothing(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	for _, byAddress := range []bool{false, true} {
		o := ClientOptions{Listen: s.Listener.Addr().String(), Token: rand.Text(), DataDir: t.TempDir(), ByAddress: byAddress}
		if at, err := Find(t.Context(), o, func() (*Runner, error) { return nil, ErrNoProxy }); err == nil {
			t.Errorf("by address %v: Find returns %s", byAddress, at.Says)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("it got %d requests", n)
	}
}
