package graphititest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a server and a function that calls it.
func start(t *testing.T, o Options) (*Graphiti, func(call Call, path, body string) (int, string)) {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(func() { tr.CloseIdleConnections(); s.Close() })
	return s, func(call Call, path, body string) (int, string) {
		t.Helper()
		method, _, _ := strings.Cut(string(call), " ")
		q, err := http.NewRequestWithContext(context.Background(), method, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(q)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, strings.TrimSpace(string(b))
	}
}

// TestAbandonedSessionEnds checks that the MCP session of a dead client ends with the
// server or at its restart.
func TestAbandonedSessionEnds(t *testing.T) {
	for age, path := range map[Age]string{Today: "/mcp", Old: "/mcp/"} {
		s, _ := start(t, Options{MCP: age})
		for range 2 {
			q, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL()+path, strings.NewReader(
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"dies","version":"1"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Connection": {"close"}}
			resp, err := (&http.Transport{}).RoundTrip(q)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.Header.Get("Mcp-Session-Id") == "" {
				t.Fatalf("%s, without a session", resp.Status)
			}
			s.Restart()
		}
	}
}

func message(group, content string) string {
	return fmt.Sprintf(`{"group_id":%q,"messages":[{"content":%q,"role_type":"user","role":null,"name":%q}]}`, group, content, content)
}

func settle(t *testing.T, s *Graphiti) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}

func names(s *Graphiti, group string) (out []string) {
	for _, e := range s.Episodes(group) {
		out = append(out, e.Name)
	}
	return out
}

// TestWorkerDiesInSilence checks that a dead worker causes no error, and that only a
// restart replaces it, which loses the queue.
func TestWorkerDiesInSilence(t *testing.T) {
	for _, tc := range []struct {
		name, poison string
	}{
		{"extraction", message("g", "poison")},
		{"group id", message("g:1", "x")},
		{"uuid", `{"group_id":"g","messages":[{"content":"x","role_type":"user","role":"","uuid":"u"}]}`},
	} {
		s, call := start(t, Options{Raises: func(_, content string) bool { return strings.Contains(content, "poison") }})
		for _, b := range []string{message("g", "before"), tc.poison, message("g", "after")} {
			if code, got := call(Messages, "/messages", b); code != 202 {
				t.Errorf("%s: got %d %s, want 202", tc.name, code, got)
			}
		}
		settle(t, s)
		if diff := cmp.Diff([]string{"before"}, names(s, "g")); diff != "" {
			t.Errorf("%s: episodes (-want +got):\n%s", tc.name, diff)
		}
		if code, got := call(Healthcheck, "/healthcheck", ""); code != 200 || got != `{"status":"healthy"}` {
			t.Errorf("%s: health %d %s", tc.name, code, got)
		}
		s.Restart()
		if code, _ := call(Messages, "/messages", message("g", "anew")); code != 202 {
			t.Errorf("%s: after the restart: %d", tc.name, code)
		}
		settle(t, s)
		if diff := cmp.Diff([]string{"before", "anew"}, names(s, "g")); diff != "" {
			t.Errorf("%s: episodes after the restart (-want +got):\n%s", tc.name, diff)
		}
		if c := s.Counts(); c.Accepted != 4 || c.Kept != 2 || c.Calls[Messages] != 4 {
			t.Errorf("%s: counts %+v", tc.name, c)
		}
	}
}

// TestEpisodesComeLater checks that an episode appears after its processing, not with the
// 202, and that a restart loses the queue.
func TestEpisodesComeLater(t *testing.T) {
	s, call := start(t, Options{Delay: time.Hour})
	call(Messages, "/messages", message("g", "x"))
	if code, got := call(Episodes, "/episodes/g?last_n=5", ""); code != 200 || got != "[]" {
		t.Errorf("got %d %s, want 200 and an empty list", code, got)
	}
	s.Restart()
	settle(t, s)
	if n := names(s, "g"); n != nil {
		t.Errorf("the queue outlived the restart: %v", n)
	}
}

// TestEpisodesAreTheLastByTheirTime checks that a listing has the latest episodes by their
// own times, without future ones.
func TestEpisodesAreTheLastByTheirTime(t *testing.T) {
	s, call := start(t, Options{})
	var list []string
	for _, m := range []struct{ name, at string }{
		{"third", "2026-03-03T00:00:00Z"}, {"first", "2026-03-01T00:00:00"}, {"second", "2026-03-02T02:00:00+02:00"}, {"future", "2999-01-01T00:00:00Z"},
	} {
		list = append(list, fmt.Sprintf(`{"content":"x","role_type":"user","role":"","name":%q,"timestamp":%q}`, m.name, m.at))
	}
	call(Messages, "/messages", `{"group_id":"g","messages":[`+strings.Join(list, ",")+`]}`)
	settle(t, s)
	_, got := call(Episodes, "/episodes/g?last_n=2", "")
	var episodes []struct {
		Name    string `json:"name"`
		ValidAt string `json:"valid_at"`
	}
	if err := json.Unmarshal([]byte(got), &episodes); err != nil {
		t.Fatal(err)
	}
	if len(episodes) != 2 || episodes[0].Name != "second" || episodes[0].ValidAt != "2026-03-02T00:00:00Z" || episodes[1].Name != "third" {
		t.Errorf("got episodes %+v, want second and third by their times", episodes)
	}
	if len(s.Episodes("g")) != 4 {
		t.Errorf("%d are stored", len(s.Episodes("g")))
	}
}

// TestBodiesThatAreRejected checks that invalid bodies get the same errors as from FastAPI.
func TestBodiesThatAreRejected(t *testing.T) {
	s, call := start(t, Options{})
	for _, tc := range []struct {
		call             Call
		path, body, want string // want is the type and place of the first error
	}{
		{Messages, "/messages", `{bad`, `"json_invalid","loc":["body",0]`},
		{Messages, "/messages", `{}`, `"missing","loc":["body","group_id"]`},
		{Messages, "/messages", `{"group_id":"g","messages":"x"}`, `"list_type","loc":["body","messages"]`},
		{Messages, "/messages", `{"group_id":"g","messages":[{"content":"x","role_type":"user"}]}`, `"missing","loc":["body","messages",0,"role"]`},
		{Messages, "/messages", `{"group_id":"g","messages":[{"content":"x","role_type":"tool","role":null}]}`, `"literal_error","loc":["body","messages",0,"role_type"]`},
		{Messages, "/messages", `{"group_id":"g","messages":[{"content":5,"role_type":"user","role":null}]}`, `"string_type","loc":["body","messages",0,"content"]`},
		{Messages, "/messages", `{"group_id":"g","messages":[{"content":"","role_type":"user","role":"","timestamp":"soon"}]}`, `"datetime_from_date_parsing","loc":["body","messages",0,"timestamp"]`},
		{Search, "/search", `{}`, `"missing","loc":["body","query"]`},
		{Search, "/search", `{"query":"x","group_ids":"g"}`, `"list_type","loc":["body","group_ids"]`},
		{Search, "/search", `{"query":"x","max_facts":"1.5"}`, `"int_type","loc":["body","max_facts"]`},
		{Episodes, "/episodes/g", ``, `"int_parsing","loc":["query","last_n"]`},
	} {
		code, got := call(tc.call, tc.path, tc.body)
		if code != 422 || !strings.HasPrefix(got, `{"detail":[{"type":`+tc.want) {
			t.Errorf("%s %s: got %d %s, want 422 of type %s", tc.call, tc.body, code, got, tc.want)
		}
	}
	if n := s.Counts().Accepted; n != 0 {
		t.Errorf("%d messages were accepted", n)
	}
}

func TestSearchFindsSharedWords(t *testing.T) {
	s, call := start(t, Options{})
	call(Messages, "/messages", message("g", "My cat is called Miso"))
	call(Messages, "/messages", message("g", "the weather is fine"))
	call(Messages, "/messages", message("h", "another cat is called Tom"))
	settle(t, s)
	for _, tc := range []struct {
		name, body string
		code       int
		want       []string
	}{
		{"one group", `{"group_ids":["g"],"query":"What is my cat called?"}`, 200, []string{"My cat is called Miso"}},
		{"all groups", `{"group_ids":null,"query":"called Miso"}`, 200, []string{"My cat is called Miso", "another cat is called Tom"}},
		{"at most", `{"query":"called Miso","max_facts":1}`, 200, []string{"My cat is called Miso"}},
		{"nothing", `{"query":"zebra"}`, 200, nil},
		{"a group id it refuses", `{"group_ids":["g:1"],"query":"cat"}`, 500, nil},
	} {
		code, body := call(Search, "/search", tc.body)
		var answer struct {
			Facts []struct {
				Fact string `json:"fact"`
			} `json:"facts"`
		}
		_ = json.Unmarshal([]byte(body), &answer)
		var got []string
		for _, f := range answer.Facts {
			got = append(got, f.Fact)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || code != tc.code {
			t.Errorf("%s: %d (-want +got):\n%s", tc.name, code, diff)
		}
	}
}

// TestTwinFailures checks, for each fault, the answer to the client and whether the message
// is stored.
func TestTwinFailures(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fault  Fault
		code   int // 0 for no answer
		stored int
	}{
		{"none", nil, 202, 1},
		{"refused", Refuse(), 0, 0},
		{"error", Answer(503, "1"), 503, 0},
		{"garbage", Garbage(), 200, 0},
		{"failed but stored", FailedButStored(), 500, 1},
		{"accepted but lost", AcceptedButLost(), 202, 0},
		{"slow", Slow(time.Millisecond), 202, 1},
	} {
		s, call := start(t, Options{})
		s.Next(Messages, tc.fault)
		if code, _ := call(Messages, "/messages", message("g", "x")); code != tc.code {
			t.Errorf("%s: %d, want %d", tc.name, code, tc.code)
		}
		settle(t, s)
		if n := len(s.Episodes("g")); n != tc.stored {
			t.Errorf("%s: %d stored, want %d", tc.name, n, tc.stored)
		}
		// The fault applied to one call only.
		if code, _ := call(Messages, "/messages", message("g", "y")); code != 202 {
			t.Errorf("%s: the next call: %d", tc.name, code)
		}
	}
}

// TestHangEndsWithItsClient checks that a hanging call ends with its client and does not
// block Close.
func TestHangEndsWithItsClient(t *testing.T) {
	s, _ := start(t, Options{})
	s.Always(Search, Hang())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/search", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultTransport.RoundTrip(q); err == nil {
		resp.Body.Close()
		t.Error("it answered")
	}
}
