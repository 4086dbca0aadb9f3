package dialect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// TestFingerprintsFollowTheConversation checks that the place in a message's fingerprint
// does not depend on later turns, and that no other text results in the fingerprint of
// another place.
func TestFingerprintsFollowTheConversation(t *testing.T) {
	at := func(dir string) string {
		return `{"role":"user","content":"<environment_context>\n  <cwd>` + dir + `</cwd>\n</environment_context>"}`
	}
	in := func(dir string) string {
		return `{"role":"system","content":"<env>\n  Working directory: ` + dir + `\n</env>"}`
	}
	const hi, yes, more = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yes"}`, `{"role":"user","content":"more"}`
	chain := func(codex bool, messages ...string) []dialect.Fingerprint {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+strings.Join(messages, ",")+`]}`), &c) {
			t.Fatalf("not understood: %s", messages)
		}
		c.Place(map[bool]string{true: dialect.Codex}[codex])
		return c.Chain(dialect.Root("", "p").In("", c.Began()), nil)
	}
	root := dialect.Root("", "p")
	a, b := root.In("", dialect.Place{Directory: "/a"}), root.In("", dialect.Place{Directory: "/b"})
	said := func(f dialect.Fingerprint) dialect.Fingerprint { return f.Link(dialect.RoleUser, []byte("hi")) }
	answered := func(f dialect.Fingerprint) dialect.Fingerprint {
		return said(f).Link(dialect.RoleAssistant, []byte("yes"))
	}
	then := func(f dialect.Fingerprint) dialect.Fingerprint { return f.Link(dialect.RoleUser, []byte("more")) }
	there, unclear := dialect.Place{Directory: "/b"}, dialect.Place{Unclear: true}
	for _, tc := range []struct {
		name     string
		codex    bool
		messages []string
		want     []dialect.Fingerprint
	}{
		{"nowhere", false, []string{hi, yes}, []dialect.Fingerprint{said(root), answered(root)}},
		{"somewhere", false, []string{in("/a"), hi, yes}, []dialect.Fingerprint{a, said(a), answered(a)}},
		{"elsewhere", false, []string{in("/b"), hi, yes}, []dialect.Fingerprint{b, said(b), answered(b)}},
		{"said behind the first message", false, []string{hi, in("/a"), yes}, []dialect.Fingerprint{said(a), said(a), answered(a)}},
		{"said behind its answer", false, []string{hi, yes, in("/b"), more}, []dialect.Fingerprint{said(root), answered(root), answered(root).In("", there), then(answered(root).In("", there))}},
		{"moved", true, []string{at("/a"), hi, yes, at("/b"), more}, []dialect.Fingerprint{a, said(a), answered(a), answered(a).In("", there), then(answered(a).In("", there))}},
		{"moved without an answer", true, []string{at("/a"), hi, at("/b"), more}, []dialect.Fingerprint{a, said(a), said(a).In("", there), then(said(a).In("", there))}},
		{"the same again", true, []string{at("/a"), hi, yes, at("/a"), more}, []dialect.Fingerprint{a, said(a), answered(a), answered(a), then(answered(a))}},
		{"another place", false, []string{in("/a"), hi, yes, in("/b"), more}, []dialect.Fingerprint{a, said(a), answered(a), answered(a).In("", unclear), then(answered(a).In("", unclear))}},
	} {
		if got := chain(tc.codex, tc.messages...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %x, want %x", tc.name, got, tc.want)
		}
	}
	distinct := []dialect.Fingerprint{
		root, a, b, root.In("/a", dialect.Place{}), root.In("", dialect.Place{Repo: "/a"}), root.In("", dialect.Place{Unclear: true}), root.In("/a", dialect.Place{Directory: "/a"}),
		root.In("x", dialect.Place{Directory: "yz"}), root.In("xy", dialect.Place{Directory: "z"}), root.In("", dialect.Place{Directory: "xy", Repo: "z"}),
		root.Link(dialect.RoleUser, []byte("/a")), root.Link(dialect.RoleOther, []byte("/a")),
	}
	for i, f := range distinct {
		if slices.Index(distinct, f) != i {
			t.Errorf("%d is as another", i)
		}
	}
}

// TestAnswers checks that Answers yields the answers to a person, newest first.
func TestAnswers(t *testing.T) {
	const greeting, hi, yes = `{"role":"assistant","content":"Got it."}`, `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"yes"}`
	const machine = `{"role":"user","content":"<system-reminder>\nx\n</system-reminder>"}`
	for _, tc := range []struct {
		messages []string
		want     []int
	}{
		{[]string{greeting}, nil},
		{[]string{greeting, hi}, nil},
		{[]string{machine, greeting, hi}, nil},
		{[]string{greeting, hi, yes, hi}, []int{2}},
		{[]string{hi, yes, hi, yes, hi}, []int{3, 1}},
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+strings.Join(tc.messages, ",")+`]}`), &c) {
			t.Fatalf("not understood: %s", tc.messages)
		}
		if got := slices.Collect(c.Answers); !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.messages, got, tc.want)
		}
	}
}

// TestFingerprintOfOtherForms checks that a text has the same fingerprint with other line ends
// and with composed letters.
func TestFingerprintOfOtherForms(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"My cafe\u0301 is\r\nthe Heron."},{"role":"assistant","content":"Caf\u00e9?\r\nYes."}]}`,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"My cafe\u0301 is\\nthe Heron.\"},{\"role\":\"assistant\",\"content\":\"Cafe\u0301?\\nYes.\"}]}",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"My caf\u00e9 is\nthe Heron."}]},{"role":"assistant","content":"Caf\u00e9?\nYes."}]}`,
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(body), &c) {
			t.Fatalf("not understood: %s", body)
		}
		chain := c.Chain(dialect.Root("", "p"), nil)
		if want := dialect.Root("", "p").Link(dialect.RoleUser, []byte("My café is\nthe Heron.")).Link(dialect.RoleAssistant, []byte("Café?\nYes.")); chain[1] != want {
			t.Errorf("%s: another fingerprint", body)
		}
	}
}
