package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// scenarios maps each scenario that every dialect has in testdata/<scenario>.txtar to the
// section of its cases. If an API cannot have a scenario, the comment of the file begins
// with "none:" and states the reason.
var scenarios = map[string]string{
	"turn": "request", "parts": "request", "tool-round": "request", "text-behind-results": "request", "other-parts": "request",
	"system-prompt": "request", "title": "request", "summary": "request", "machine": "request", "not-json": "request", "not-this-api": "request",
	"streamed": "events", "streamed-tool-call": "events", "cut-off": "events", "refusal": "events", "failed": "events", "length": "events",
	"plain": "body", "plain-tool-call": "body", "usage": "events",
	"match": "head", "credentials": "head", "count": "head", "error-shape": "failure",
}

// checks maps each section of a case, except want, to its check.
var checks = map[string]func(*testing.T, *testCase){
	"request": checkRequest, "events": checkEvents, "body": checkBody, "head": checkHead, "failure": checkFailure,
}

// testCase is one case of a fixture: a section and the wanted results.
type testCase struct {
	d       dialect.Dialect
	info    dialect.Info
	name    string
	section string
	text    string
	want    wants
}

// wants are lines of the form "key: value" or "key".
type wants []struct{ key, value string }

// wantKeys lists the allowed keys of wants by section.
var wantKeys = map[string]string{
	"request": "last nobody unread kind round block chain offered held model",
	"events":  "text end id item usage", "body": "text end id item usage",
	"head":    "use route upstream model id credential",
	"failure": "error",
}

func (w wants) all(key string) (values []string) {
	for _, l := range w {
		if l.key == key {
			values = append(values, l.value)
		}
	}
	return values
}

func (w wants) one(key string) string { return strings.Join(w.all(key), "\n") }
func (w wants) has(key string) bool   { return len(w.all(key)) > 0 }

// readWants parses the wants of a section and unquotes quoted values.
func readWants(t testing.TB, where, section, text string) (w wants) {
	t.Helper()
	if section == "failure" {
		return wants{{"error", strings.TrimSpace(text)}}
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimSpace(value)
		if q, err := strconv.Unquote(value); err == nil {
			value = q
		}
		if !slices.Contains(strings.Fields(wantKeys[section]), key) {
			t.Fatalf("%s: %q is not wanted of a %s", where, key, section)
		}
		w = append(w, struct{ key, value string }{key, value})
	}
	return w
}

// fixtures returns the cases of a dialect by scenario.
func fixtures(t testing.TB, d dialect.Dialect) map[string][]testCase {
	t.Helper()
	info := d.Info()
	files, err := filepath.Glob(filepath.Join(info.Name, "testdata", "*.txtar"))
	must(t, err)
	all := make(map[string][]testCase)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		must(t, err)
		texts := make(map[string]string)
		for _, f := range archive.Files {
			texts[f.Name] = string(f.Data)
		}
		scenario := strings.TrimSuffix(filepath.Base(file), ".txtar")
		all[scenario] = nil
		for _, f := range archive.Files {
			name, section := "", f.Name
			if i := strings.LastIndexByte(f.Name, '/'); i >= 0 {
				name, section = f.Name[:i], f.Name[i+1:]
			}
			if section == "want" {
				continue
			}
			where := fmt.Sprintf("%s, %s", file, f.Name)
			want, ok := texts[strings.TrimPrefix(name+"/want", "/")]
			if checks[section] == nil || !ok {
				t.Fatalf("%s: no section that is known, or nothing is wanted", where)
			}
			all[scenario] = append(all[scenario], testCase{d, info, name, section, string(f.Data), readWants(t, where, section, want)})
		}
		if len(all[scenario]) == 0 && !bytes.HasPrefix(archive.Comment, []byte("none: ")) {
			t.Fatalf("%s: no case, and no reason", file)
		}
	}
	return all
}

// TestEveryDialect runs every scenario for every registered dialect, and fails for a
// dialect without a scenario.
func TestEveryDialect(t *testing.T) {
	for _, d := range registry.All {
		t.Run(d.Info().Name, func(t *testing.T) {
			found := fixtures(t, d)
			for scenario, section := range scenarios {
				cases, ok := found[scenario]
				if !ok {
					t.Errorf("there is no testdata/%s.txtar", scenario)
				}
				if len(cases) > 0 && !slices.ContainsFunc(cases, func(c testCase) bool { return c.section == section }) {
					t.Errorf("%s has no %s", scenario, section)
				}
			}
			for scenario, cases := range found {
				for i := range cases {
					t.Run(scenario+"/"+cases[i].name, func(t *testing.T) { checks[cases[i].section](t, &cases[i]) })
				}
			}
		})
	}
}

const testBlock = "<graphiti_memory>\n- the cat is \"Miso\" \\ é\n</graphiti_memory>"

// body returns the request without the mark at the block's position.
func (tc *testCase) body() []byte { return []byte(strings.Replace(tc.text, "«»", "", 1)) }

func checkRequest(t *testing.T, tc *testCase) {
	body := tc.body()
	var c dialect.Conversation
	if ok := tc.d.Parse(body, &c); ok == tc.want.has("unread") {
		t.Fatalf("understood %v", ok)
	}
	if tc.want.has("unread") {
		return
	}
	if tc.want.has("nobody") != (c.Last < 0) || tc.want.has("nobody") == tc.want.has("last") {
		t.Fatalf("the newest message of a person is %d", c.Last)
	}
	got := map[string]string{"kind": kindName[c.Kind], "model": string(c.Model)}
	want := map[string]string{"kind": "turn", "model": string(c.Model)}
	for key := range got {
		if tc.want.has(key) {
			want[key] = tc.want.one(key)
		}
	}
	if c.Last >= 0 {
		got["last"], want["last"] = string(c.Text(c.Last)), tc.want.one("last")
	}
	for key, is := range map[string]bool{"round": c.Answered(), "offered": c.Tools, "held": c.HeldElsewhere()} {
		if key != "round" && !tc.want.has(key) {
			continue
		}
		got[key], want[key] = strconv.FormatBool(is), strconv.FormatBool(tc.want.has(key))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if tc.want.has("chain") {
		chain := c.Chain(dialect.Root("", "p"), nil)
		if chain[len(chain)-1] != linked(t, tc.want.one("chain")) {
			t.Error("the conversation has another fingerprint")
		}
	}
	if at := strings.Index(tc.text, "«»"); at >= 0 || c.Last >= 0 {
		inserted := strings.ReplaceAll(tc.want.one("block"), "BLOCK", string(dialect.AppendJSON(nil, testBlock)))
		out := string(bytes.Join(dialect.Splice(nil, body, []dialect.Insert{c.Insert(c.Last, testBlock)}), nil))
		if diff := cmp.Diff(string(body[:max(at, 0)])+inserted+string(body[max(at, 0):]), out); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	checkSplices(t, tc.d, body)
}

var kindName = map[dialect.Kind]string{
	dialect.KindTurn: "turn", dialect.KindTitle: "title", dialect.KindSummary: "summary", dialect.KindProbe: "probe", dialect.KindMachine: "machine",
}

// linked returns the fingerprint of a chain such as user "a" | assistant "b".
func linked(t *testing.T, chain string) dialect.Fingerprint {
	t.Helper()
	f := dialect.Root("", "p")
	for _, link := range strings.Split(chain, " | ") {
		who, said, _ := strings.Cut(link, " ")
		text, err := strconv.Unquote(said)
		if err != nil {
			t.Fatalf("link %s of the chain: %v", link, err)
		}
		f = f.Link(map[string]dialect.Role{"user": dialect.RoleUser, "assistant": dialect.RoleAssistant}[who], []byte(text))
	}
	return f
}

// checkSplices checks blocks before each message that can have one, alone and together.
func checkSplices(t interface{ Fatalf(string, ...any) }, d dialect.Dialect, body []byte) {
	var c dialect.Conversation
	if !d.Parse(body, &c) {
		return
	}
	var at []int
	for i, m := range c.Messages {
		if (m.Person || i == c.Newest) && c.Insertable(i) {
			at = append(at, i)
		}
		if m.Person && !c.Insertable(i) {
			t.Fatalf("a block has no place before message %d", i)
		}
	}
	for n := range at {
		checkSplice(t, d, body, at[n:n+1], testBlock)
	}
	checkSplice(t, d, body, at, testBlock)
}

// checkSplice puts a block before each of the messages in at. Without the blocks, the body
// must be the original; with them, it must be valid JSON in which each of the messages
// begins with the block and has its text unchanged.
func checkSplice(t interface{ Fatalf(string, ...any) }, d dialect.Dialect, body []byte, at []int, block string) {
	var c, again dialect.Conversation
	d.Parse(body, &c)
	var inserts []dialect.Insert
	for _, i := range at {
		inserts = append(inserts, c.Insert(i, block))
	}
	out := bytes.Join(dialect.Splice(nil, body, inserts), nil)
	rest := bytes.Clone(out)
	for n := len(inserts) - 1; n >= 0; n-- {
		from := inserts[n].At
		for _, before := range inserts[:n] {
			from += len(before.Text)
		}
		if !bytes.HasPrefix(rest[from:], inserts[n].Text) {
			t.Fatalf("insert %d is not where it belongs", n)
		}
		rest = slices.Delete(rest, from, from+len(inserts[n].Text))
	}
	if !bytes.Equal(rest, body) {
		t.Fatalf("something else changed:\n%q\n%q", body, rest)
	}
	if json.Valid(body) && !json.Valid(out) {
		t.Fatalf("not valid any more: %s", out)
	}
	if !d.Parse(out, &again) {
		t.Fatalf("not understood any more: %s", out)
	}
	for i := range c.Messages {
		if said := again.Joined(i); slices.Contains(at, i) && !strings.HasPrefix(said, block+"\n\n") && !strings.Contains(said, "\n"+block+"\n\n") {
			t.Fatalf("the block is no part of message %d, or not at its beginning: %q", i, said)
		}
		if diff := cmp.Diff(string(c.Text(i)), string(again.Text(i))); diff != "" {
			t.Fatalf("the text of message %d changed: %s", i, diff)
		}
	}
}

// readEvents feeds a stream to a reader in pieces of size bytes and returns the answer.
func readEvents(d dialect.Dialect, stream []byte, size int) dialect.Answer {
	r := d.NewReader("")
	events := dialect.EventReader{Emit: r.Event}
	for piece := range slices.Chunk(stream, size) {
		events.Feed(piece)
	}
	events.End()
	return r.Answer()
}

func checkEvents(t *testing.T, tc *testCase) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := []byte(strings.ReplaceAll(tc.text, "\n", end))
		for _, size := range []int{len(stream) + 1, 1, 2, 3, 7, 11, 64} {
			tc.answered(t, fmt.Sprintf("in pieces of %d, lines that end with %q", size, end), readEvents(tc.d, stream, size))
		}
	}
}

func checkBody(t *testing.T, tc *testCase) {
	r := tc.d.NewReader("")
	r.Body([]byte(tc.text))
	tc.answered(t, "whole", r.Answer())
}

var endName = map[dialect.End]string{
	dialect.EndUnknown: "unknown", dialect.EndStop: "stop", dialect.EndLength: "length", dialect.EndToolCalls: "calls", dialect.EndFilter: "filter", dialect.EndError: "error",
}

// answered compares an answer with the wanted one.
func (tc *testCase) answered(t *testing.T, how string, a dialect.Answer) {
	t.Helper()
	got := map[string]string{"text": a.Text, "end": endName[a.End], "id": a.ID, "item": a.Item, "usage": ""}
	if a.Usage != (dialect.Usage{}) {
		got["usage"] = fmt.Sprint(a.Usage.Input, a.Usage.Cached, a.Usage.Output)
	}
	want := make(map[string]string)
	for key := range got {
		want[key] = tc.want.one(key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", how, diff)
	}
}

var useName = map[dialect.Use]string{
	dialect.UseNone: "none", dialect.UseTurn: "turn", dialect.UseReplay: "replay", dialect.UseFetch: "fetch",
}

// header adapts an http.Header to a dialect.Request.
type header http.Header

func (h header) Peek(name string) []byte { return []byte(http.Header(h).Get(name)) }

func checkHead(t *testing.T, tc *testCase) {
	first, fields, _ := strings.Cut(tc.text, "\n")
	method, target, _ := strings.Cut(first, " ")
	u, err := url.Parse(target)
	must(t, err)
	h := make(http.Header)
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.Add(name, value)
	}
	r := dialect.Request{Method: []byte(method), Path: []byte(u.Path), Header: header(h)}
	m := tc.d.Match(r)
	got := map[string]string{"use": useName[m.Use], "route": m.Route, "model": string(m.Model), "id": m.ID, "upstream": strconv.FormatBool(m.Upstream)}
	want := make(map[string]string)
	for key := range got {
		want[key] = tc.want.one(key)
	}
	want["upstream"] = strconv.FormatBool(tc.want.has("upstream"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found := registry.Find(r)
	if m.Use != dialect.UseNone && found.Dialect != tc.d && found.Fetched != tc.d {
		t.Error("another dialect claims the request")
	}
	if r.Path = append(r.Path, '/'); m.Use != dialect.UseNone && m.Use != dialect.UseFetch && registry.Find(r).Dialect != tc.d {
		t.Error("a slash at the end of the path makes a difference")
	}
	if m.Upstream && found.Upstream != tc.info.Upstream {
		t.Errorf("it goes to %s", found.Upstream)
	}
	var shown []string
	for _, place := range tc.info.Credentials {
		for _, v := range append(h.Values(place.Header), u.Query()[place.Query]...) {
			shown = append(shown, strings.TrimPrefix(v, "Bearer "))
		}
		if !slices.Contains(registry.Credentials, place) {
			t.Errorf("the registry lacks %+v", place)
		}
	}
	if diff := cmp.Diff(tc.want.all("credential"), shown); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
}

func checkFailure(t *testing.T, tc *testCase) {
	fields := strings.SplitN(strings.TrimSpace(tc.text), " ", 4)
	status, err := strconv.Atoi(fields[0])
	if err != nil || len(fields) != 4 {
		t.Fatalf("%q is no status, type, code and message", tc.text)
	}
	got := tc.d.Error(dialect.Failure{Status: status, Type: fields[1], Code: strings.Trim(fields[2], "-"), Message: fields[3]})
	if diff := cmp.Diff(tc.want.one("error"), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
