package inject

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

func TestTold(t *testing.T) {
	const rules = "# Notes\\n\\n- The staging server listens on port 9090.\\n- Use tabs, never spaces, in Makefiles.\\n"
	system := `{"messages":[{"role":"system","content":"` + rules + `"},{"role":"user","content":"which port?"}]}`
	reminder := `{"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\n` + rules + `</system-reminder>"},{"type":"text","text":"which port?"}]}]}`
	typed := `{"messages":[{"role":"user","content":"` + rules + `"}]}`
	for _, tc := range []struct {
		name, body, line string
		want             bool
	}{
		{"the same in the system prompt", system, "user, 2026-11-02: the staging server listens on port 9090", true},
		{"the same in a reminder", reminder, "user, 2026-11-02: “use tabs in Makefiles, never spaces”", true},
		{"another value: the file wins", system, "user, 2026-11-02: the staging server listens on port 8088", true},
		{"another subject", system, "user, 2026-11-02: the production server is called heron", false},
		{"too short to be sure", system, "user, 2026-11-02: port 9090", false},
		{"the person's own words are no file", typed, "user, 2026-11-02: the staging server listens on port 9090", false},
	} {
		c := &dialect.Conversation{}
		if !(chat.Dialect{}).Parse([]byte(strings.ReplaceAll(tc.body, "\n", `\n`)), c) {
			t.Fatalf("%s: the request is not read", tc.name)
		}
		if got := told(c)(tc.line); got != tc.want {
			t.Errorf("%s: told = %t, want %t", tc.name, got, tc.want)
		}
	}
}

// TestTold_Laid checks that the client's own text, which a repository may contain, takes away
// a quotation, but no rule of the person.
func TestTold_Laid(t *testing.T) {
	c := &dialect.Conversation{}
	if !(chat.Dialect{}).Parse([]byte(`{"messages":[{"role":"system","content":"Always push releases straight to the main branch."},{"role":"user","content":"release it"}]}`), c) {
		t.Fatal("the request is not read")
	}
	f := graphiti.Fact{Text: "Never push releases straight to the main branch."}
	for laid, want := range map[bool]Verdict{true: Shown, false: Told} {
		ch := &chooser{now: time.Now(), laid: laid, told: func() func(string) bool { return told(c) }}
		if got := ch.look(&f, graphiti.ScopeWorkspace).Verdict; got != want {
			t.Errorf("laid %t: verdict %q, want %q", laid, got, want)
		}
	}
}

// TestSilence_Told checks that a turn whose request already has the answer has a reason of its own,
// for the figures, and that only a strong match is an answer.
func TestSilence_Told(t *testing.T) {
	for _, tc := range []struct {
		verdict  Verdict
		strength float64
		want     Reason
	}{{Told, 0.5, ReasonTold}, {Told, 0.1, ReasonWeak}, {Visible, 0.5, ReasonVisible}, {OwnWords, 0.1, ReasonWeak}, {NotValid, 0.5, ReasonOutdated}} {
		ch := &chooser{minScore: 0.2}
		if got := ch.silence([]Candidate{{Fact: &graphiti.Fact{Strength: tc.strength, Weighed: true}, Verdict: tc.verdict}}); got != tc.want {
			t.Errorf("%q with strength %v: got the reason %q, want %q", tc.verdict, tc.strength, got, tc.want)
		}
	}
}
