package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standIn starts a stand-in for Graphiti and returns it with a client.
func standIn(t *testing.T, o graphititest.Options) (*graphititest.Graphiti, *Client) {
	t.Helper()
	s, err := graphititest.Start(o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s, client(t, s.URL(), "")
}

func client(t *testing.T, endpoint, key string) *Client {
	t.Helper()
	r, err := New(remote.Options{Endpoint: endpoint, APIKey: func() string { return key }})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// answering returns a client of a service that handles every request with h.
func answering(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return client(t, s.URL, "")
}

func body(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func settle(t *testing.T, s *graphititest.Graphiti) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helptest.Patience)
	defer cancel()
	must(t, s.Settle(ctx))
}

// TestFactsNameTheirEpisodes checks that a fact has its episodes, if the service lists them.
func TestFactsNameTheirEpisodes(t *testing.T) {
	for _, tc := range []struct {
		member string
		want   []string
	}{
		{`,"episodes":["e1","e2"]`, []string{"e1", "e2"}},
		{`,"episodes":null`, nil},
		{"", nil},
	} {
		facts, err := answering(t, body(`{"facts":[{"uuid":"u","fact":"f"`+tc.member+`}]}`)).Search(t.Context(), []string{"g"}, "q", 5)
		if err != nil || len(facts) != 1 {
			t.Fatalf("found %+v, %v", facts, err)
		}
		if diff := cmp.Diff(tc.want, facts[0].Episodes); diff != "" {
			t.Errorf("episodes (-want +got):\n%s", diff)
		}
	}
}

// TestRESTMessageForm checks that a message always has a role, never a uuid,
// and no time in the future.
func TestRESTMessageForm(t *testing.T) {
	s, _ := standIn(t, graphititest.Options{})
	r := client(t, s.URL()+"/", "the-key")
	before := time.Now()
	if err := r.Write(context.Background(), "g", []graphiti.Row{
		{Name: "n", Role: graphiti.RoleUser, Text: "x", Said: time.Now().Add(time.Hour).In(time.FixedZone("", 7200))},
	}); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if got.Authorization != "Bearer the-key" {
		t.Errorf("authorization %q", got.Authorization)
	}
	var sent struct {
		Messages []map[string]any `json:"messages"`
	}
	must(t, json.Unmarshal(got.Body, &sent))
	m := sent.Messages[0]
	if role, ok := m["role"]; !ok || role != "" {
		t.Errorf("role is %v (%v), want an empty one", role, ok)
	}
	if _, ok := m["uuid"]; ok {
		t.Error("a uuid was sent")
	}
	stamp, _ := m["timestamp"].(string)
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil || !strings.HasSuffix(stamp, "Z") || at.Before(before) || at.After(time.Now()) {
		t.Errorf("timestamp %q, %v", stamp, err)
	}
	settle(t, s)
	if n := len(s.Episodes("g")); n != 1 {
		t.Errorf("%d episodes", n)
	}
}

func TestRESTReadsAnyFormOfAnAnswer(t *testing.T) {
	second := time.Date(2026, 3, 2, 12, 0, 5, 0, time.UTC)
	long := strings.Repeat("é", remote.MaxFactBytes)
	for _, tc := range []struct {
		name, body string
		want       []graphiti.Fact // nil for an error
	}{
		{"nothing found", `{"facts":[]}`, []graphiti.Fact{}},
		{"unknown fields", `{"facts":[{"fact":"f","score":{"x":[1]}}],"more":1}`, []graphiti.Fact{{Text: "f"}}},
		{"times with a zone", `{"facts":[{"fact":"f","valid_at":"2026-03-02T14:00:05+02:00","created_at":"2026-03-02T12:00:05Z"}]}`, []graphiti.Fact{{Text: "f", ValidAt: second, CreatedAt: second}}},
		{"times without a zone", `{"facts":[{"fact":"f","valid_at":"2026-03-02T12:00:05","invalid_at":"2026-03-02T12:00:05.000000"}]}`, []graphiti.Fact{{Text: "f", ValidAt: second, InvalidAt: second}}},
		{"fractions of a second", `{"facts":[{"fact":"f","expired_at":"2026-03-02T12:00:05.001500+00:00"}]}`, []graphiti.Fact{{Text: "f", ExpiredAt: second.Add(1500 * time.Microsecond)}}},
		{"null times", `{"facts":[{"fact":"f","valid_at":null,"invalid_at":null}]}`, []graphiti.Fact{{Text: "f"}}},
		{"facts without text", `{"facts":[{"fact":""},{"fact":" \n"},null,{},{"fact":"f"}]}`, []graphiti.Fact{{Text: "f"}}},
		{"long text", `{"facts":[{"fact":"` + long + `"}]}`, []graphiti.Fact{{Text: long[:remote.MaxFactBytes]}}},
		{"more than asked for", `{"facts":[{"fact":"1"},{"fact":"2"},{"fact":"3"},{"fact":"4"}]}`, []graphiti.Fact{{Text: "1"}, {Text: "2"}, {Text: "3"}}},
		{"no facts in it", `{"detail":"hello"}`, nil},
		{"null", `null`, nil},
		{"wrong type", `{"facts":[{"fact":5}]}`, nil},
		{"wrong type of a time", `{"facts":[{"fact":"f","valid_at":5}]}`, nil},
		{"no time", `{"facts":[{"fact":"f","valid_at":"soon"}]}`, nil},
		{"a list", `[]`, nil},
		{"cut off", `{"facts":[{"fact":"f"`, nil},
		{"a page", `<html>`, nil},
		{"empty", ``, nil},
		{"deep", strings.Repeat("[", 1<<20), nil},
	} {
		got, err := answering(t, body(tc.body)).Search(context.Background(), []string{"a", "b"}, "q", 3)
		if (err != nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, append([]graphiti.Fact{}, got...)); err == nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestRESTReadLimit(t *testing.T) {
	s, r := standIn(t, graphititest.Options{})
	s.Always(graphititest.Search, graphititest.Huge(50<<20))
	if _, err := r.Search(context.Background(), []string{"g"}, "q", 1); !errors.Is(err, graphiti.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	s.Always(graphititest.Search, nil)
	if _, err := r.Search(context.Background(), []string{"g"}, "q", 1); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// TestRESTErrorsQuoteNothing checks that errors do not repeat the text that a service
// quotes, which is part of a conversation.
func TestRESTErrorsQuoteNothing(t *testing.T) {
	const secret = "my cat is called Miso"
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"rejected", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"detail":[{"input":"`+secret+`"}]}`, http.StatusUnprocessableEntity)
		}},
		{"not JSON", body(secret)},
		{"wrong type", body(`{"facts":"` + secret + `"}`)},
		{"no time", body(`{"facts":[{"fact":"f","valid_at":"` + secret + `"}]}`)},
	} {
		r := answering(t, tc.answer)
		_, searched := r.Search(context.Background(), []string{"g"}, secret, 1)
		written := r.Write(context.Background(), "g", []graphiti.Row{{Text: secret}})
		for _, err := range []error{searched, written} {
			if err != nil && strings.Contains(err.Error(), "Miso") {
				t.Errorf("%s: the error quotes the conversation: %v", tc.name, err)
			}
		}
		if searched == nil {
			t.Errorf("%s: no error", tc.name)
		}
	}
}

func TestRESTEndsWithItsContext(t *testing.T) {
	s, r := standIn(t, graphititest.Options{})
	s.Always(graphititest.Search, graphititest.Hang())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Search(ctx, []string{"g"}, "q", 1); !errors.Is(err, context.DeadlineExceeded) || !graphiti.Retryable(err) {
		t.Errorf("error %v", err)
	}
}

// TestRESTFollowsNoRedirect checks that a redirect does not send a conversation and the key
// to another server.
func TestRESTFollowsNoRedirect(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	r := answering(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if err := r.Write(context.Background(), "g", []graphiti.Row{{Role: graphiti.RoleUser}}); err == nil || reached {
		t.Errorf("error %v, reached %v", err, reached)
	}
}

func TestRESTDetailIsBounded(t *testing.T) {
	r := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("é", 5000), http.StatusBadRequest)
	})
	var status *graphiti.StatusError
	if err := r.Health(context.Background()); !errors.As(err, &status) || len(status.Detail) > remote.MaxDetailBytes || status.Code != 400 {
		t.Errorf("error %v, %+v", err, status)
	}
}

func TestRESTEndpoints(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"http://127.0.0.1:8000": true, "https://memory.example/graphiti/": true,
		"": false, "localhost:8000": false, "ftp://x": false, "http://": false, "http://x/?a=b": false, "http://x/#a": false, "http://\x7f": false,
	} {
		if r, err := New(remote.Options{Endpoint: endpoint}); (err == nil) != ok {
			t.Errorf("%q: got error %v, want success %v", endpoint, err, ok)
		} else if ok && strings.HasSuffix(r.base, "/") {
			t.Errorf("%q: base %q", endpoint, r.base)
		}
	}
}

// checks runs a series of checks and returns all names and the failed checks.
func checks(run func(report func(remote.Check))) (names []string, failed map[string]remote.Check) {
	failed = make(map[string]remote.Check)
	run(func(c remote.Check) {
		names = append(names, c.Name)
		if !c.OK {
			failed[c.Name] = c
		}
	})
	return names, failed
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		call   graphititest.Call
		fault  graphititest.Fault
		failed string // the check that fails
		detail string
	}{
		{"all well", "", nil, "", ""},
		{"another service", graphititest.Healthcheck, graphititest.Garbage(), "healthcheck", "not a Graphiti response"},
		{"unwell", graphititest.Healthcheck, func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			_, _ = w.Write([]byte(`{"status":"starting"}`))
		}, "healthcheck", "not a Graphiti response"},
		{"no database", graphititest.ShowEdge, graphititest.Answer(500, ""), "database", "500"},
		{"a model is missing", graphititest.Search, graphititest.Answer(500, ""), "search", "500"},
	} {
		s, r := standIn(t, graphititest.Options{})
		if tc.fault != nil {
			s.Always(tc.call, tc.fault)
		}
		names, failed := checks(func(report func(remote.Check)) { r.Check(context.Background(), report) })
		if diff := cmp.Diff([]string{"healthcheck", "database", "search"}, names); diff != "" {
			t.Errorf("%s: checks (-want +got):\n%s", tc.name, diff)
		}
		if (len(failed) == 0) != (tc.failed == "") || len(failed) > 1 {
			t.Errorf("%s: failed %+v", tc.name, failed)
		}
		if c := failed[tc.failed]; tc.failed != "" && (!strings.Contains(c.Detail, tc.detail) || c.Remedy == "") {
			t.Errorf("%s: %+v, want %q", tc.name, c, tc.detail)
		}
	}
}

// TestCallsAreCounted checks the counts of calls by name and outcome, without group names.
func TestCallsAreCounted(t *testing.T) {
	s, err := graphititest.Start(graphititest.Options{})
	must(t, err)
	counts := make(map[string]int)
	r, err := New(remote.Options{Endpoint: s.URL(), Called: func(call string, o remote.Outcome) { counts[call+" "+string(o)]++ }})
	must(t, err)
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, _ = r.Search(t.Context(), []string{"g"}, "x", 1)
	_, _ = r.Search(expired, []string{"g"}, "x", 1)
	s.Next(graphititest.Search, graphititest.Answer(500, ""), graphititest.Answer(401, ""), graphititest.Garbage())
	for range 3 {
		_, _ = r.Search(t.Context(), []string{"g"}, "x", 1)
	}
	_, _ = r.Episodes(t.Context(), "secret_group", 1)
	if err := r.CheckDatabase(t.Context()); err != nil {
		t.Errorf("check of the database: got %v, want nil", err)
	}
	s.Always(graphititest.ShowEdge, graphititest.Answer(500, ""))
	if err := r.CheckDatabase(t.Context()); err == nil {
		t.Error("check of a database that fails: got nil, want an error")
	}
	s.Close()
	_ = r.Health(t.Context())
	want := map[string]int{
		"POST /search ok": 1, "POST /search timeout": 1, "POST /search failed": 1, "POST /search refused": 1, "POST /search unreadable": 1,
		"GET /episodes ok": 1, "GET /entity-edge ok": 1, "GET /entity-edge failed": 1, "GET /healthcheck unreachable": 1,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestCheckOfAnotherService checks that another service fails a single check, with the
// probable backend in its remedy.
func TestCheckOfAnotherService(t *testing.T) {
	r := answering(t, http.NotFound)
	names, failed := checks(func(report func(remote.Check)) { r.Check(t.Context(), report) })
	if len(names) != 1 || !strings.Contains(failed["healthcheck"].Remedy, "memory.backend to graphiti-mcp") {
		t.Errorf("checked %v: %+v", names, failed)
	}
}

// TestCheckShowsNoCredentials checks that a failed check omits the credentials of the
// endpoint.
func TestCheckShowsNoCredentials(t *testing.T) {
	r := client(t, "http://user:hunter2@127.0.0.1:1", "")
	_, failed := checks(func(report func(remote.Check)) { r.Check(context.Background(), report) })
	for _, c := range failed {
		if strings.Contains(c.Detail+c.Remedy, "hunter2") || strings.Contains(c.Detail+c.Remedy, "user:") {
			t.Errorf("got %+v, want no credentials in it", c)
		}
	}
	if len(failed) != 1 { // without an answer, the other checks do not run
		t.Errorf("%d checks failed", len(failed))
	}
}

// FuzzRESTAnswer checks that no answer breaks the client or exceeds the requested number of
// results.
func FuzzRESTAnswer(f *testing.F) {
	for _, s := range []string{`{"facts":[{"fact":"f","valid_at":null}]}`, `[{"name":"n"}]`, `null`, `{"facts":[[]]}`, `"`, "\xff"} {
		f.Add(s, 200)
	}
	f.Add("{}", 422)
	f.Fuzz(func(t *testing.T, answer string, code int) {
		r := client(t, "http://graphiti.test", "")
		r.client.Transport = canned{answer, 200 + uint(code)%400}
		facts, err := r.Search(context.Background(), []string{"g"}, "q", 2)
		if len(facts) > 2 || err != nil && facts != nil {
			t.Errorf("%d facts, %v", len(facts), err)
		}
		for _, fact := range facts {
			if len(fact.Text) > remote.MaxFactBytes || strings.TrimSpace(fact.Text) == "" {
				t.Errorf("a text of %d bytes", len(fact.Text))
			}
		}
		if episodes, _ := r.Episodes(context.Background(), "g", 2); len(episodes) > 2 {
			t.Errorf("%d episodes", len(episodes))
		}
	})
}

type canned struct {
	body string
	code uint
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	rec.Header().Set("Retry-After", strconv.Itoa(len(c.body)))
	rec.WriteHeader(int(c.code))
	_, _ = rec.WriteString(c.body)
	return rec.Result(), nil
}

// TestRESTWaitsByTheServersClock checks that Retry-After is relative to the Date of the
// same answer, not to the local clock.
func TestRESTWaitsByTheServersClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, -48 * time.Hour, 48 * time.Hour} {
		r := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			now := time.Now().Add(ahead).UTC()
			w.Header().Set("Date", now.Format(http.TimeFormat))
			w.Header().Set("Retry-After", now.Add(30*time.Second).Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		var status *graphiti.StatusError
		if err := r.Health(context.Background()); !errors.As(err, &status) || status.RetryAfter != 30*time.Second {
			t.Errorf("ahead by %v: %v, %+v", ahead, err, status)
		}
		if d := r.latest().Sub(time.Now().Add(min(ahead, 0))); d.Abs() > 5*time.Second {
			t.Errorf("ahead by %v: messages may speak of a time %v off", ahead, d)
		}
	}
}
