package inject

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// fakeSnapshots is a store of snapshots in memory.
type fakeSnapshots map[string][]byte

func (f fakeSnapshots) Load(_ context.Context, key string) ([]byte, error) { return f[key], nil }
func (f fakeSnapshots) Save(_ context.Context, key string, body []byte, _ int64, _ ...string) error {
	f[key] = bytes.Clone(body)
	return nil
}

// TestShortTermMemoryHoldsNoSecret checks that texts are redacted before they are joined
// and cut.
func TestShortTermMemoryHoldsNoSecret(t *testing.T) {
	const secret = "correct-horse-battery"
	// The rules resemble those of capture/redact: one needs a line of its own, the other
	// text after a note's cut.
	rule := regexp.MustCompile(`(?m)^DB_PASSWORD=[a-z-]+|://\w+:[a-z-]+@[\w.]+`)
	redact := func(text string, _ time.Time) (string, bool) { return rule.ReplaceAllString(text, "[redacted]"), true }
	long := strings.Repeat("x", 125)
	for name, tc := range map[string]struct {
		call, result string
		said, want   string
	}{
		"what was asked":      {said: "DB_PASSWORD=" + secret + "\nis my setting", want: resumes + "[redacted] is my setting"},
		"what was asked, cut": {said: long + " postgres://bob:" + secret + "@db.example.com", want: resumes + long + " postgres[redacted]"},
		"a task": {said: "Fix it.", want: "open task: set [redacted] now",
			call: `{"todos":[{"content":"set ://bob:` + secret + `@db now","status":"pending"}]}`, result: "ok"},
	} {
		m := memory(t, always(), &fakeDecisions{})
		kept := fakeSnapshots{}
		o := *m.opts()
		o.Snapshots, o.Redact = kept, redact
		m.Set(o.Groups, o.RecallSettings)
		who := graphiti.Who{User: "user:p", Session: "session:1"}
		done := m.Read(&Round{Calls: []dialect.Call{{ID: "1", Arguments: tc.call}}, Results: []dialect.Result{{ID: "1", Text: tc.result}}})
		m.Worked(who, 0, &done)
		m.Remember(who, 0, Ended{Said: tc.said})
		if strings.Contains(string(kept[snapshotKey(who)]), "horse") {
			t.Errorf("%s: got %s, want no \"horse\" in it", name, kept[snapshotKey(who)])
		}
		// The conversation continues without its history.
		if sent, _ := ask(t, m, `{"messages":[{"role":"user","content":"Go on, please."}]}`, both); !strings.Contains(sent, tc.want) || strings.Contains(sent, "horse") {
			t.Errorf("%s: got %s, want %q in it, no horse", name, sent, tc.want)
		}
	}
}

// TestSnapshot_ClientsSummary: the notes have the points of a client's summary. A later one
// closes the points that it reports as done, and no others.
func TestSnapshot_ClientsSummary(t *testing.T) {
	m := noted(t, &fakeDecisions{}, snapshot{Asked: "x", Work: tasks{Tasks: []dialect.Task{{Text: "measure the queue"}, {Text: "write the docs"}}}})
	who := graphiti.Who{User: "user:p", Session: "session:1"}
	m.opts().Redact = func(text string, _ time.Time) (string, bool) {
		return strings.ReplaceAll(text, "key-a1", "[redacted]"), true
	}
	for _, text := range []string{
		"## Key Decisions\n- Redis it is\n- key-a1 for the host\n## Next Steps\n- delete the old queue\n- rename it\n",
		"## Key Decisions\n- Redis it is\n## Completed\n- Measure the queue.\n- Delete the old queue\n## Next Steps\n- tell the team\n",
	} {
		m.Remember(who, 0, Ended{By: ForSummary, Answered: text})
	}
	notes := m.sessionNotes(&turn{o: m.opts()}, who)
	want := []string{
		resumes + "x", openTask + "write the docs", listedOpen + "rename it", listedOpen + "tell the team",
		listedDecision + "[redacted] for the host", listedDecision + "Redis it is",
	}
	got := plainAll(notes.lines(snapshotChars))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(notes.Decided) > 0 {
		t.Errorf("got %q as the person's decisions, want none", notes.Decided)
	}
}

// TestSnapshot_Children: the notes have the newest result of each of the last tasks.
func TestSnapshot_Children(t *testing.T) {
	m := noted(t, &fakeDecisions{}, snapshot{})
	who := graphiti.Who{User: "user:p", Session: "session:1"}
	for _, c := range []child{{"one", "1"}, {"two", strings.Repeat("long ", 100)}, {"three", "3"}, {"four", "4"}, {"five", "5"}, {"three", "III"}} {
		m.Remember(who, 0, Ended{By: ByAgent, Said: c.Asked, Answered: c.Result})
	}
	notes := m.sessionNotes(&turn{o: m.opts()}, who)
	want := []string{subagentAsked + "three" + answeredSo + "III", subagentAsked + "five" + answeredSo + "5", subagentAsked + "four" + answeredSo + "4", subagentAsked + "two" + answeredSo + noteLine(strings.Repeat("long ", 100))}
	if diff := cmp.Diff(want, plainAll(notes.lines(snapshotChars))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRemember_Decided: only a short message can be a decision; a long one contains pasted text.
func TestRemember_Decided(t *testing.T) {
	m := noted(t, &fakeDecisions{}, snapshot{})
	m.opts().Decides = func(_ context.Context, text string) bool { return strings.Contains(text, "instead of") }
	who := graphiti.Who{User: "user:p", Session: "session:1"}
	const said = "Let us take Kafka instead of RabbitMQ."
	for _, said := range []string{said, said + strings.Repeat(" log line", 40), "Let us see."} {
		m.Remember(who, 0, Ended{Said: said})
	}
	if got, want := m.sessionNotes(&turn{o: m.opts()}, who).Decided, []string{said}; !cmp.Equal(got, want) {
		t.Errorf("got the decisions %q, want %q", got, want)
	}
}
