package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// passes returns the recent requests that a caller of the admin side may see.
func (w *world) passes(c service.Caller) (p service.Passed, err error) {
	out, _, err := service.Requests.Call(w.t.Context(), w.app.host(), c, func(any) error { return nil }, nil)
	if err == nil {
		p = out.(service.Passed)
	}
	return p, err
}

// TestRequestsPass checks that an operator sees the requests of all people and their memory
// status, and any other caller only their own. No request shows text or a credential.
func TestRequestsPass(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "identity.users_file": usersFile(t)})
	const secret = "My cat is called Miso."
	w.say(secret, "Authorization", "Bearer sk-josh", "X-Graphiti-Session", "s1")
	w.say(secret, "Authorization", "Bearer sk-stranger")
	w.delivered(2)
	resp, err := w.client.Get("http://" + w.app.proxy.Addr().String() + "/v1/models?key=sk-hidden")
	must(t, err)
	// Without this read, the next request would use a new connection, and could end first.
	must(t, helptest.ErrorOf(io.Copy(io.Discard, resp.Body)))
	resp.Body.Close()
	// A claim to be josh proves no person without a credential.
	w.say("No key.", "X-Graphiti-User", "josh")
	var all service.Passed
	waitUntil(t, "four requests", func() bool {
		all, _ = w.passes(service.Operator)
		return len(all.Requests) == 4
	})
	r := all.Requests[0]
	if r.Number != 1 || r.Model != "stand-in" || r.API != "chat" || r.Status != 200 || r.Memory != "empty" || r.Conversation != graphiti.SessionHash("session:s1") || r.Turn == "" ||
		r.UpstreamMs <= 0 || r.TotalMs < r.UpstreamMs || r.MemoryMs <= 0 || all.Last != 4 || all.Requests[2].API != "" || all.Requests[2].Path != "/v1/models" {
		t.Errorf("%+v", all)
	}
	if b, _ := json.Marshal(all); strings.Contains(string(b), "Miso") || strings.Contains(string(b), "hidden") || strings.Contains(string(b), "sk-") {
		t.Errorf("got %s, want nothing that was said, and no credential", b)
	}
	if r.Person != "user:josh" || all.Requests[1].Person != "" || all.Requests[2].Person != "" {
		t.Errorf("got %q, %q, %q, want the person who is proven, and nobody else", r.Person, all.Requests[1].Person, all.Requests[2].Person)
	}
	for name, tc := range map[string]struct {
		own  service.Selector
		want string
	}{
		"josh":        {service.Selector{User: "josh"}, "[1]"},
		"a stranger":  {service.Selector{Credential: "sha256:" + sha("sk-stranger")}, "[2]"},
		"another one": {service.Selector{Credential: "sha256:" + sha("sk-another")}, "[]"},
	} {
		theirs, err := w.passes(service.Caller{Name: name, Own: tc.own})
		numbers := []int{}
		for _, r := range theirs.Requests {
			numbers = append(numbers, r.Number)
		}
		if fmt.Sprint(numbers) != tc.want || err != nil {
			t.Errorf("%s sees %v (%v), want %s", name, numbers, err, tc.want)
		}
	}
	if _, err := w.passes(service.Caller{Name: "nobody"}); err == nil {
		t.Error("nobody sees requests")
	}
	// The figures of the week count the same two requests.
	for _, tc := range []struct {
		in       service.Selector
		requests int
	}{{service.Selector{}, 2}, {service.Selector{User: "josh"}, 1}, {service.Selector{Credential: "sha256:" + sha("sk-stranger")}, 1}, {service.Selector{User: "ann"}, 0}} {
		week, err := service.Stats.Run(t.Context(), w.app.host(), &tc.in)
		if f := week.Week; err != nil || f.Requests != tc.requests || f.Turns != tc.requests || f.Silent != tc.requests || f.Input == 0 && tc.requests > 0 || f.WaitedMs <= 0 && tc.requests > 0 {
			t.Errorf("of %+v: %+v, %v", tc.in, week.Week, err)
		}
	}
}

// TestRequestsSurviveARestart checks that a proxy lists the requests of the last one in data_dir, that
// only its user can read the file, and that a damaged file costs nothing else.
func TestRequestsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, requestsFile)
	serve := func(want int) {
		t.Helper()
		w := start(t, dir, nil)
		if all, err := w.passes(service.Operator); len(all.Requests) != want || err != nil {
			t.Errorf("%d requests (%v), want %d", len(all.Requests), err, want)
		}
		w.say("My cat is called Miso.")
		w.stop()
		b, err := os.ReadFile(file)
		if info, failed := os.Stat(file); err != nil || failed != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(b), "Miso") {
			t.Errorf("%v, %v: %s", err, failed, b)
		}
	}
	serve(0)
	serve(1)
	writeFile(t, file, "[{")
	serve(0)
	serve(1)
}

// TestNoRequestLogWithoutAdminSide checks that a proxy without an admin side stores no
// requests.
func TestNoRequestLogWithoutAdminSide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, dir, map[string]string{"admin.listen": "off"})
	w.say("My cat is called Miso.")
	if resp, err := w.client.Get("http://" + w.app.proxy.Addr().String() + "/v1/models"); err != nil || resp.StatusCode == http.StatusBadGateway {
		t.Errorf("%v", err)
	} else {
		resp.Body.Close()
	}
	w.stop()
	if _, err := os.Stat(filepath.Join(dir, requestsFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no file of requests", err)
	}
}

// TestConversationHasItsModel checks that the list of conversations and a conversation have the model of
// the first message.
func TestConversationHasItsModel(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("My cat is called Miso.", "X-Graphiti-Session", "s1")
	w.delivered(1)
	list, err := service.List.Run(t.Context(), w.app.host(), &service.ListRequest{Limit: 10})
	if err != nil || len(list.Conversations) != 1 || list.Conversations[0].Model != "stand-in" {
		t.Fatalf("got %+v, %v", list.Conversations, err)
	}
	one, err := service.TurnsOf.Run(t.Context(), w.app.host(), &service.ConversationRequest{Hash: list.Conversations[0].Hash, Limit: 10})
	if err != nil || one.Model != "stand-in" || one.Client == "" {
		t.Errorf("got %+v, %v", one.Conversation, err)
	}
}

// TestALineForEachRequest checks that each request is logged at info, without the text of
// messages and without anything that resembles a key, and that log.requests=false turns the
// lines off.
func TestALineForEachRequest(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"true", "false"} {
		w := start(t, t.TempDir(), map[string]string{"log.requests": on})
		w.say("My cat is called Miso.")
		if resp, err := w.client.Get("http://" + w.app.proxy.Addr().String() + "/v1/models/sk-proj-4kT9wQz7LmX2vBn8JcY5hDf3GsP6aEu1?key=hidden"); err == nil {
			resp.Body.Close()
		}
		if resp, err := w.client.Post("http://"+w.app.proxy.Addr().String()+"/v1/chat/completions", "application/json", http.NoBody); err == nil {
			resp.Body.Close()
		}
		var lines []string
		enough := func() bool {
			lines = nil
			for line := range strings.Lines(w.log.String()) {
				if strings.Contains(line, `"msg":"request"`) || strings.Contains(line, "msg=request ") {
					lines = append(lines, line)
				}
			}
			return len(lines) >= 3 || on == "false"
		}
		waitUntil(t, "the lines", enough)
		if on == "false" {
			w.stop()
			if enough(); len(lines) > 0 {
				t.Errorf("got %q, want none", lines)
			}
			continue
		}
		all := strings.Join(lines, "")
		// A line may follow those of later requests.
		slices.SortFunc(lines, func(a, b string) int {
			return strings.Compare(a[strings.LastIndex(a, "-"):], b[strings.LastIndex(b, "-"):])
		})
		for _, want := range []string{" client=Go-http-client ", " model=stand-in ", " upstream=openai ", " added_ms=", " input_tokens=", " output_tokens="} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("the line %s lacks %s", lines[0], want)
			}
		}
		if len(lines) != 3 || strings.Contains(all, "Miso") || strings.Contains(all, "sk-proj") || strings.Contains(all, "hidden") ||
			!strings.Contains(lines[0], "INFO") || !strings.Contains(lines[0], "/v1/chat/completions") || !strings.Contains(lines[0], "empty; facts=0") {
			t.Errorf("%d: %s", len(lines), all)
		}
	}
}
