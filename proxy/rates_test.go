package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// shared is a database of several replicas, in RAM.
type shared struct {
	mu   sync.Mutex
	full map[[32]byte]time.Time
	down error
}

func (s *shared) share(_ context.Context, spent map[[32]byte]time.Duration) (map[[32]byte]time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	until := make(map[[32]byte]time.Duration)
	for key, d := range spent {
		if s.full[key].Before(time.Now()) {
			s.full[key] = time.Now()
		}
		s.full[key] = s.full[key].Add(d)
	}
	for key, full := range s.full {
		until[key] = time.Until(full)
	}
	return until, nil
}

// TestSharedRates checks that replicas count together after each exchange, that a replica counts
// alone during an outage of the shared state, and that a long outage leaves little debt.
func TestSharedRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := shared{full: make(map[[32]byte]time.Time)}
		var both [2]rates
		exchange := func() {
			for range 2 { // the second time for the spending of the other replica
				for i := range both {
					if err := both[i].share(t.Context(), state.share); !errors.Is(err, state.down) {
						t.Fatal(err)
					}
				}
			}
		}
		ask := func(i, want int) {
			t.Helper()
			tokens, _, err := both[i].Admit(nil, func(*fasthttp.RequestHeader) []string { return []string{"a"} }, time.Now())
			got := 0
			if ce := (*wire.ClientError)(nil); errors.As(err, &ce) {
				got = ce.RetryAfter
			} else {
				both[i].Spend(tokens, 10, time.Now())
			}
			if got != want {
				t.Fatalf("replica %d: wait of %d s, want %d", i, got, want)
			}
		}
		for i := range both {
			both[i].Set(Rates{Requests: 4, Tokens: 60})
		}
		exchange()
		ask(0, 0)
		ask(0, 0)
		exchange()
		ask(1, 0)
		ask(1, 0)
		ask(1, 15) // alone, two more
		exchange()
		ask(0, 15)
		time.Sleep(15 * time.Second) // of a fake clock
		ask(0, 0)
		exchange()
		ask(1, 15)
		state.down = errors.New("away")
		time.Sleep(time.Minute)
		for range 240 {
			exchange()
			ask(0, 0)
			ask(1, 0)
			time.Sleep(15 * time.Second)
		}
		for range 4 {
			ask(0, 0)
		}
		exchange() // fails, and takes nothing
		state.down = nil
		exchange()
		ask(1, 15)
		time.Sleep(time.Minute)
		exchange()
		ask(0, 0)
		time.Sleep(time.Minute)
		both[0].Set(Rates{Requests: 3}) // others have four
		exchange()
		ask(1, 0)
		exchange()
		ask(0, 0)
		ask(0, 0)
		ask(0, 0)
		ask(0, 20)
	})
}

// TestLimitedCallerIsLogged checks that the log names the caller of a refused request.
func TestLimitedCallerIsLogged(t *testing.T) {
	url, _ := echo(t)
	var log bytes.Buffer
	s, base := start(t, url, func(o *Options) {
		o.Routes.Limits.Rates.Requests, o.Routes.Logged, o.Memory.Identity.Multi = 1, true, true
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	for range 2 {
		req, _ := http.NewRequest(http.MethodPost, base+"/v1/chat/completions", strings.NewReader(`{}`))
		req.Header.Set("Authorization", "Bearer a-key")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
	}
	must(t, s.Shutdown(t.Context()))
	var who graphiti.Who
	who.SetCredentials("", graphiti.Fingerprint([]byte("a-key")))
	if lines := log.String(); !regexp.MustCompile(`status=429 .*upstream=openai tenant=` + who.Tenant[:12]).MatchString(lines) {
		t.Errorf("got %s", lines)
	}
}

// TestLimitedAnswers checks that a request above a limit is refused in its API's own form, before it
// reaches the upstream, and that a reload changes the limit.
func TestLimitedAnswers(t *testing.T) {
	url, _ := echo(t)
	for path, want := range map[string][2]string{
		"/v1/chat/completions":                    {"error.type", "rate_limit_error"},
		"/v1/responses":                           {"error.type", "rate_limit_error"},
		"/v1/messages":                            {"error.type", "rate_limit_error"},
		"/v1beta/models/gemini-3:generateContent": {"error.status", "RESOURCE_EXHAUSTED"},
		"/v1/models":                              {"error.type", "rate_limit_error"},
		"/v1/chat/completions?reload=a-new-limit": {},
	} {
		s, base := start(t, url, func(o *Options) { o.Routes.Limits.Rates.Requests = 1 })
		post := func(key string) (*http.Response, string) {
			req, _ := http.NewRequest(http.MethodPost, base+path, strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(req)
			must(t, err)
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return resp, string(text)
		}
		if resp, _ := post("a"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: first status %d", path, resp.StatusCode)
		}
		if want[0] == "" {
			limits := testLimits()
			limits.Rates.Requests = 2
			must(t, s.SetRoutes(Routes{Upstreams: upstreams(url), Limits: limits}))
			if resp, _ := post("a"); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d after a reload", resp.StatusCode)
			}
			continue
		}
		resp, text := post("a")
		var body map[string]map[string]any
		_ = json.Unmarshal([]byte(strings.ReplaceAll(text, `"type":"error",`, "")), &body)
		_, field, _ := strings.Cut(want[0], ".")
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "60" || body["error"][field] != want[1] || !strings.Contains(text, "limits.requests_per_minute") {
			t.Errorf("%s: %d, Retry-After %s, %s", path, resp.StatusCode, resp.Header.Get("Retry-After"), text)
		}
		if resp, _ := post("b"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: another caller has status %d", path, resp.StatusCode)
		}
	}
}

// TestRates checks the limits of requests and tokens for callers, with a clock.
func TestRates(t *testing.T) {
	type step struct {
		at     time.Duration
		payers string
		tokens int // of the answer
		wait   int // seconds; 0 if the request is admitted
	}
	for name, tc := range map[string]struct {
		set   Rates
		steps []step
	}{
		"no limit":                {Rates{}, []step{{0, "a", 1e9, 0}, {0, "a", 0, 0}}},
		"requests":                {Rates{Requests: 2}, []step{{0, "a", 0, 0}, {0, "a", 0, 0}, {0, "a", 0, 30}, {29 * time.Second, "a", 0, 1}, {30 * time.Second, "a", 0, 0}}},
		"another caller":          {Rates{Requests: 1}, []step{{0, "a", 0, 0}, {0, "b", 0, 0}, {0, "b", 0, 60}}},
		"a credential beside":     {Rates{Requests: 1}, []step{{0, "a", 0, 0}, {0, "a x", 0, 60}, {0, "y a", 0, 60}, {0, "x", 0, 0}}},
		"a refused request":       {Rates{Requests: 1}, []step{{0, "a", 0, 0}, {time.Second, "a", 0, 59}, {2 * time.Second, "a", 0, 58}}},
		"tokens delay later ones": {Rates{Tokens: 60}, []step{{0, "a", 90, 0}, {0, "a", 0, 31}, {31 * time.Second, "a", 0, 0}}},
		"a bounded debt":          {Rates{Tokens: 60}, []step{{0, "a", 1e9, 0}, {0, "a", 0, 541}}},
		"both":                    {Rates{Requests: 1, Tokens: 60}, []step{{0, "a", 60, 0}, {0, "a", 0, 60}}},
	} {
		t.Run(name, func(t *testing.T) {
			var r rates
			r.Set(tc.set)
			start := time.Now()
			for i, s := range tc.steps {
				now := start.Add(s.at)
				all, _, err := r.Admit(nil, func(*fasthttp.RequestHeader) []string { return strings.Fields(s.payers) }, now)
				got := 0
				if ce := (*wire.ClientError)(nil); errors.As(err, &ce) {
					got = ce.RetryAfter
				}
				if got != s.wait {
					t.Fatalf("step %d: wait of %d s, want %d", i, got, s.wait)
				}
				r.Spend(all, s.tokens, now)
				r.Set(tc.set) // a reload without a change
			}
		})
	}
}
