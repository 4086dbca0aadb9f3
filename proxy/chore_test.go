package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestChoresOfASession checks that a request that repeats a session's history is not a turn
// if it asks for an answer in another format, or if it lacks the session's tools and has
// another system prompt or asks for a summary. If the session continues from such a
// request, later requests like it are turns.
func TestChoresOfASession(t *testing.T) {
	const (
		sys    = `{"role":"system","content":"You write titles."},`
		hi     = `{"role":"user","content":"Hi."},`
		one    = `{"role":"assistant","content":"One."},`
		two    = `{"role":"assistant","content":"Two."},`
		tools  = `,"tools":[{"type":"function","function":{"name":"bash"}}]`
		schema = `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}}`
		ask    = `{"role":"user","content":"What is it about?"}`
		sum    = `{"role":"user","content":"Write a summary of this conversation."}`
		round  = `{"role":"user","content":"And now?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}`
	)
	type request struct {
		messages, rest string
		kind           dialect.Kind
	}
	for _, tc := range []struct {
		name     string
		requests []request
	}{
		{"without tools", []request{{hi[:len(hi)-1], tools, dialect.KindTurn}, {hi + one + ask, "", dialect.KindTurn}, {sys + hi + one + ask, "", dialect.KindProbe}, {hi + one + sum, "", dialect.KindSummary}, {hi + one + ask, tools, dialect.KindTurn}}},
		{"with a form", []request{{hi[:len(hi)-1], "", dialect.KindTurn}, {hi + one + ask, schema, dialect.KindProbe}, {hi + one + ask, "", dialect.KindTurn}}},
		{"always with a form", []request{{hi[:len(hi)-1], schema, dialect.KindTurn}, {hi + one + ask, schema, dialect.KindTurn}}},
		{"never with tools", []request{{hi[:len(hi)-1], "", dialect.KindTurn}, {hi + one + ask, "", dialect.KindTurn}, {hi + one + sum, "", dialect.KindTurn}}},
		{"a round without tools", []request{{hi[:len(hi)-1], tools, dialect.KindTurn}, {hi + one + round, "", dialect.KindTurn}}},
		{"nothing is repeated", []request{{hi[:len(hi)-1], tools, dialect.KindTurn}, {ask, "", dialect.KindTurn}}},
		{"tools are off from now on", []request{{hi[:len(hi)-1], tools, dialect.KindTurn}, {hi + one + ask, "", dialect.KindTurn},
			{hi + one + ask + "," + two + `{"role":"user","content":"I see."}`, "", dialect.KindTurn}, {hi + one + ask + "," + two + ask, "", dialect.KindTurn}}},
		{"again, before it is known", []request{{hi[:len(hi)-1], tools, dialect.KindTurn}, {sys + hi + one + ask, "", dialect.KindProbe}, {sys + hi + one + ask, "", dialect.KindProbe}}},
	} {
		s, of := idle(), sessionOf{session: "session:1"}
		for n, r := range tc.requests {
			var c dialect.Conversation
			if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+r.messages+`]`+r.rest+`}`), &c) {
				t.Fatalf("%s, %d: not understood", tc.name, n)
			}
			kind := c.Kind
			at := placed{session: foundSession{chain: c.Chain(dialect.Root("", "p"), nil)}}
			note := s.sessionNote(of)
			if kind == dialect.KindTurn && note.isChore(&c, at.session.chain) {
				kind = c.Beside()
				s.noteChore(of, at.session.chain[c.Last])
			}
			if kind == dialect.KindTurn {
				s.noteTurn(of, &at, &c)
			}
			if kind != r.kind {
				t.Errorf("%s, request %d: kind %d, want %d", tc.name, n, kind, r.kind)
			}
		}
	}
}

// TestMessagesAtOnce checks which messages of a session a program wrote: messages that follow the
// answer at once, where a person types with pauses. One line may be a person's, typed during the
// answer.
func TestMessagesAtOnce(t *testing.T) {
	const second = time.Second
	short, long := "Use the blue key.", `Validation feedback:\nAnswer with a number.\n\nFix the errors.`
	for name, tc := range map[string]struct {
		pauses []time.Duration // before each message after the first
		text   string          // of the last
		want   graphiti.Fate
		doubt  bool
	}{
		"a program's report":       {[]time.Duration{9 * second, 9 * second, second / 20}, long, graphiti.Fate{Name: graphiti.FateClient, Reason: graphiti.ClientAtOnce}, false},
		"a line":                   {[]time.Duration{9 * second, 9 * second, second / 20}, short, graphiti.Fate{Name: graphiti.FateOpen}, true},
		"after a pause":            {[]time.Duration{9 * second, 9 * second, second}, long, graphiti.Fate{Name: graphiti.FateOpen}, false},
		"in a program's session":   {[]time.Duration{second / 20, second / 20, second / 20}, long, graphiti.Fate{Name: graphiti.FateOpen}, false},
		"after one pause, perhaps": {[]time.Duration{second / 20, 9 * second, second / 20}, long, graphiti.Fate{Name: graphiti.FateOpen}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, of := idle(), sessionOf{session: "session:1"}
			history := ""
			for n := range len(tc.pauses) + 1 {
				text := fmt.Sprintf("Message %d.", n)
				if n > 0 {
					time.Sleep(tc.pauses[n-1])
				}
				if n == len(tc.pauses) {
					text = tc.text
				}
				message := `{"role":"user","content":"` + text + `"}`
				var c dialect.Conversation
				if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+history+message+`]}`), &c) {
					t.Fatalf("%s, %d: not understood", name, n)
				}
				history += message + `,{"role":"assistant","content":"Noted."},`
				at := placed{session: foundSession{id: "session:1", chain: c.Chain(dialect.Root("", "p"), nil)}}
				note := s.sessionNote(of)
				at.session.doubts(&note, &c, false)
				if n == len(tc.pauses) {
					r := &request{memory: Memory{MemorySettings: MemorySettings{Ingest: true}}.withDefaults()}
					r.route.Use = dialect.UseTurn
					got := s.fate(r, &parsed{conv: &c, ingest: true}, &caller{}, &at)
					if doubt := at.session.why.Reason == graphiti.HeldDoubt; got != tc.want || doubt != tc.doubt {
						t.Errorf("%s: got %+v and doubt %v, want %+v and %v", name, got, doubt, tc.want, tc.doubt)
					}
				}
				s.noteTurn(of, &at, &c)
				s.changeNote(of, func(n *sessionNote) { n.answered = time.Now() })
			}
		})
	}
}

// TestIsTitle: a short line of the conversation's own words that is no sentence.
func TestIsTitle(t *testing.T) {
	const history = "The harbour gate code is 4711, please note it.\nNoted: the harbour gate code is 4711."
	const prompt = "Name the conversation above in at most five words. Answer with the name only, without quotation marks."
	for _, tc := range []struct {
		name, history, asks, answer string
		want                        bool
	}{
		{"title", history, prompt, "Harbour gate", true},
		{"short question", history, "Which gate was it?", "Harbour gate", false},
		{"sentence", history, prompt, "The harbour gate code is 4711.", false},
		{"new words", history, prompt, "Paris", false},
		{"first turn or tools", "", prompt, "Harbour gate", false},
		{"several lines", history, prompt, "Harbour\ngate", false},
	} {
		if got := isTitle(tc.history, tc.asks, tc.answer); got != tc.want {
			t.Errorf("%s: isTitle(%q) = %v, want %v", tc.name, tc.answer, got, tc.want)
		}
	}
}

// TestNormalized: neither the escapes of JSON nor marks count.
func TestNormalized(t *testing.T) {
	if got, want := string(normalized([]byte(`He said: \"Gate\n4711\"`), 12)), "hesaidgate47"; got != want {
		t.Errorf("normalized = %q, want %q", got, want)
	}
}
