package observe

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func noting(t testing.TB) *Observer {
	t.Helper()
	o, err := New(noop.Meter{}, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	return o
}

func headOf(agent, target string) *fasthttp.RequestHeader {
	h := &fasthttp.RequestHeader{}
	h.SetUserAgent(agent)
	h.SetRequestURI(target)
	return h
}

var (
	ann  = graphiti.Who{User: "user:ann", Session: "session:1"}
	plan = inject.Plan{
		Turn: "turn", Outcome: inject.Outcome{Status: inject.StatusRecalled, Source: inject.SourceLive, Facts: 2, Chars: 90, Took: 3 * time.Millisecond},
		Searched: []inject.Searched{{Scope: graphiti.ScopeUser, Group: "g", Source: inject.SourceLive, Found: 4, Took: time.Millisecond}, {Scope: graphiti.ScopeWorkspace, Source: inject.SourceLive, Err: fmt.Errorf("a secret that somebody said")}},
	}
)

func chat(who graphiti.Who, model string) LogEntry {
	return LogEntry{API: "chat", Program: dialect.Program{Name: dialect.Codex}, Model: []byte(model), Who: who, Blocks: 3}
}

// pass records one request of who, and returns its state before the end.
func pass(o *Observer, who graphiti.Who) Request {
	h := headOf("codex_cli_rs/0.98.0 (linux)", "/v1/chat/completions?key=hidden")
	r := o.Begin(h, "", time.Now())
	r.Did(h, chat(who, `"gpt-5"`), &plan)
	r.Headed()
	seen := r
	r.End(h, 200, &plan.Outcome)
	return seen
}

// TestPassedRequest checks all fields of a recorded request, and that no message text is
// recorded.
func TestPassedRequest(t *testing.T) {
	o := noting(t)
	pass(o, ann)
	list := o.Passed(0, 10, "")
	if len(list) != 1 {
		t.Fatalf("%d requests", len(list))
	}
	p := list[0]
	if p.Number != 1 || p.ID == "" || p.Client != dialect.Codex || p.Version != "0.98.0" || p.Model != "gpt-5" || p.API != "chat" || p.Path != "/v1/chat/completions" || p.Status != 200 || p.Stream ||
		p.Memory != "recalled" || p.Source != "live" || p.Facts != 2 || p.Chars != 90 || p.MemoryMs != 3 || p.Blocks != 3 || p.Conversation != graphiti.SessionHash("session:1") || p.Turn != "turn" || p.TotalMs <= 0 || p.UpstreamMs < 0 || p.TotalMs < p.UpstreamMs {
		t.Errorf("%+v", p)
	}
	if len(p.Searches) != 2 || p.Searches[0] != (graphiti.LoggedSearch{Scope: "user", Source: "live", Found: 4, Ms: 1}) || p.Searches[1].Failed != "error" || strings.Contains(fmt.Sprint(list), "secret") {
		t.Errorf("%+v", p.Searches)
	}
}

// TestPassedRequestsShowNoKey checks that a key in a path, a query, a client name or a
// model name is not listed.
func TestPassedRequestsShowNoKey(t *testing.T) {
	const key = "sk-proj-4kT9wQz7LmX2vBn8JcY5hDf3GsP6aEu1"
	o := noting(t)
	for _, agent := range []string{key + "/1", "codex/" + key, key[:20], ""} {
		for _, model := range []string{key, `"` + key + `"`, "<script>", strings.Repeat("m", 200), "a\nb"} {
			h := headOf(agent, "/v1beta/models/"+key+":generateContent?key="+key+"&x=hidden")
			r := o.Begin(h, "", time.Now())
			r.Did(h, LogEntry{API: "gemini", Model: []byte(model), Who: ann}, &plan)
			r.End(h, 200, nil)
		}
	}
	h := headOf(key, "/"+strings.Repeat("long/", 100))
	r := o.Begin(h, "", time.Now())
	r.End(h, 404, nil)
	list := o.Passed(0, 100, "")
	if all := fmt.Sprintf("%+v", list); len(list) != 21 || strings.Contains(all, "4kT9") || strings.Contains(all, "hidden") || strings.Contains(all, "script") {
		t.Errorf("%d: %s", len(list), all)
	}
	if last := list[20]; len(last.Path) != maxPath || last.API != "" || last.Status != 404 {
		t.Errorf("of no API: %+v", last)
	}
}

// TestPassedRequestsAreBounded checks that the newest requests are stored, and listed by
// number and owner.
func TestPassedRequestsAreBounded(t *testing.T) {
	o := noting(t)
	bob := graphiti.Who{User: "user:bob", Tenant: "t"}
	const n = maxPassed + 100
	for i := range n {
		pass(o, []graphiti.Who{ann, bob}[i%2])
	}
	for _, tc := range []struct {
		after, limit int
		owner        string
		first, last  int
		count        int
	}{
		{0, 10_000, "", n - maxPassed + 1, n, maxPassed},
		{0, 3, "", n - 2, n, 3},
		{n - 2, 10, "", n - 1, n, 2},
		{n, 10, "", 0, 0, 0},
		{n + 5, 2, "", n - 1, n, 2}, // a number of an earlier process
		{0, 10_000, "user:ann", n - maxPassed + 1, n - 1, maxPassed / 2},
		{0, 2, bob.Owner(), n - 2, n, 2},
		{0, 10, "user:eve", 0, 0, 0},
	} {
		list := o.Passed(tc.after, tc.limit, tc.owner)
		if len(list) != tc.count || tc.count > 0 && (list[0].Number != tc.first || list[len(list)-1].Number != tc.last) {
			t.Errorf("%+v: %d requests", tc, len(list))
		}
	}
}

// TestSavedRequests checks that a later process lists the requests of an earlier one, before its own,
// to the same people, and that a damaged file changes nothing.
func TestSavedRequests(t *testing.T) {
	josh := graphiti.Who{User: "user:josh", Tenant: "t", Proven: true, Session: "session:2"}
	first := noting(t)
	for range maxPassed {
		pass(first, ann)
	}
	pass(first, josh)
	b, last := first.SavePassed(0)
	if last != maxPassed+1 || len(b) > maxPassed<<10 {
		t.Errorf("got %d requests in %d bytes", last, len(b))
	}
	if b, same := first.SavePassed(last); b != nil || same != last {
		t.Errorf("saves %d unchanged requests", same)
	}
	second := noting(t)
	for _, damaged := range []string{"", "{", `[{"number":"x"}]`, "null"} {
		if err := second.RestorePassed([]byte(damaged)); (err == nil) != (damaged == "null") || second.Passed(0, 10, "") != nil {
			t.Errorf("%q: %v, %v", damaged, err, second.Passed(0, 10, ""))
		}
	}
	must(t, second.RestorePassed(b))
	want := first.Passed(0, 1, josh.Owner())
	got := second.Passed(0, 10, josh.Owner())
	if len(got) != 1 || got[0].Number != maxPassed {
		t.Fatalf("got %+v", got)
	}
	if got[0].Number = want[0].Number; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	pass(second, josh)
	if all := second.Passed(0, 2*maxPassed, ""); len(all) != maxPassed || all[maxPassed-1].Number != maxPassed+1 || all[maxPassed-1].ID == all[maxPassed-2].ID {
		t.Errorf("%d requests, %+v", len(all), all[maxPassed-2:])
	}
	if eve := second.Passed(0, 10, "user:eve"); eve != nil {
		t.Errorf("another person sees %+v", eve)
	}
	second.LogRequests(false, true)
	if list := second.Passed(0, 10, josh.Owner()); len(list) != 2 || list[0].Person != graphiti.PersonHash("user:josh") || list[1].Person != list[0].Person {
		t.Errorf("got %+v, want hashes", list)
	}
	again, _ := second.SavePassed(0)
	third := noting(t)
	if err := third.RestorePassed(again); err != nil || len(third.Passed(0, 10, josh.Owner())) != 2 || strings.Contains(string(again), "user:josh") {
		t.Errorf("a second restart: %v, %s", err, again)
	}
}

// TestTokensOfAPassedRequest checks that the usage of an answer is recorded before and
// after its request ends, and not for another request.
func TestTokensOfAPassedRequest(t *testing.T) {
	o := noting(t)
	h := headOf("codex/1", "/v1/chat/completions")
	usage := dialect.Answer{Usage: dialect.Usage{Input: 100, Cached: 60}}
	r := o.Begin(h, "", time.Now())
	r.Did(h, chat(ann, "m"), &plan)
	before := r.Read()
	before.Report(&usage)
	r.Streamed(time.Time{})
	r.End(h, 200, nil)
	seen := pass(o, ann)
	after := seen.Read()
	after.Report(&usage)
	list := o.Passed(0, 10, "")
	if len(list) != 2 || list[0].InputTokens != 100 || list[0].CachedTokens != 60 || !list[0].Stream || list[1].InputTokens != 100 {
		t.Errorf("%+v", list)
	}
	for range 2 * maxPassed { // later requests displace them
		pass(o, ann)
	}
	after.Report(&usage)
	for _, p := range o.Passed(0, maxPassed, "") {
		if p.InputTokens != 0 {
			t.Errorf("request %d has another's tokens", p.Number)
		}
	}
}

// TestPassedMessagesOfAWebSocket checks that each message of a WebSocket is listed as a
// request.
func TestPassedMessagesOfAWebSocket(t *testing.T) {
	o := noting(t)
	h := headOf("codex/1", "/v1/responses")
	r := o.Begin(h, "", time.Now())
	r.Did(h, chat(ann, "m"), &plan)
	message := r.OfMessage(&plan.Outcome)
	message.Headed()
	message.EndMessage(200)
	if list := o.Passed(0, 10, ""); len(list) != 1 || list[0].Path != "response.create" || list[0].UpstreamMs < 0 {
		t.Errorf("%+v", list)
	}
}

// TestPassedRequestsAtTheSameTime records and lists requests concurrently, for the race
// detector.
func TestPassedRequestsAtTheSameTime(t *testing.T) {
	o := noting(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				seen := pass(o, ann)
				read := seen.Read()
				read.Report(&dialect.Answer{Usage: dialect.Usage{Input: 1}})
				o.Passed(0, 5, "user:ann")
			}
		})
	}
	all.Wait()
}

// TestNoTraceAllocatesOnlyTheRecord checks that a request without a trace allocates nothing but
// its record.
func TestNoTraceAllocatesOnlyTheRecord(t *testing.T) {
	o, err := New(noop.Meter{}, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	h := &fasthttp.RequestHeader{}
	p := &inject.Plan{Searched: make([]inject.Searched, 3)}
	n := testing.AllocsPerRun(100, func() {
		r := o.Begin(h, "/v1/chat/completions", time.Time{})
		r.spans.planned(p)
		r.Send(h, "host", "openai", []byte("m"))
		read := r.Read()
		if _, replaced := r.Context(); replaced || r.Parent() != "" {
			t.Error("a turn of nobody's trace")
		}
		r.Unread()
		read.Report(&dialect.Answer{})
		r.whole()
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}
