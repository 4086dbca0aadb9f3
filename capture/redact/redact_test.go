package redact

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSecretsGo(t *testing.T) {
	missed, all := 0, secretsInText(t)
	for _, tc := range all {
		got, n := Redact(tc.before + tc.secret + tc.after)
		rest, begins := strings.CutPrefix(got, tc.before)
		kind, ends := strings.CutSuffix(rest, tc.after)
		switch {
		case n == 0 || strings.Contains(got, tc.secret):
			missed++
			t.Errorf("%s: got %q, want the secret redacted", tc.name, got)
		case n != 1 || !begins || !ends || !redacted.MatchString(kind):
			t.Errorf("%s: not the secret alone went: %q", tc.name, got)
		}
		if again, n := Redact(got); n != 0 || again != got {
			t.Errorf("%s: %q became %q", tc.name, got, again)
		}
	}
	t.Logf("%d of %d secrets found", len(all)-missed, len(all))
}

var redacted = regexp.MustCompile(`^\[redacted:[a-z0-9-]+\]$`)

func TestLookAlikesStay(t *testing.T) {
	wrong, all := 0, corpus(t, "lookalikes.txt")
	for _, line := range all {
		text := unescaped.Replace(line)
		if got, n := Redact(text); got != text || n != 0 {
			wrong++
			t.Errorf("%q became %q", text, got)
		}
	}
	t.Logf("%d of %d look-alikes stayed", len(all)-wrong, len(all))
}

// TestLongText checks that Redact truncates a long text instead of returning an unchecked
// rest, and that RedactBy returns no text after its deadline.
func TestLongText(t *testing.T) {
	key := "ghp_" + mixed(36)
	text := key + strings.Repeat(" é", maxText/3) + key
	got, n := Redact(text)
	if n != 1 || strings.Contains(got, key) || len(got) > maxText+100 || !strings.HasSuffix(got, cutOff) || !utf8.ValidString(got) {
		t.Errorf("%d secrets, %d bytes that end with %q", n, len(got), got[len(got)-40:])
	}
	if got, _, ok := RedactBy("my key is "+key, time.Now().Add(-time.Second)); ok || got != "" {
		t.Errorf("too late: %q, %v", got, ok)
	}
	if got, n, ok := RedactBy("my key is "+key, time.Now().Add(time.Minute)); !ok || n != 1 || strings.Contains(got, key) {
		t.Errorf("in time: %q, %v", got, ok)
	}
}

func FuzzRedact(f *testing.F) {
	for _, tc := range secretsInText(f) {
		f.Add(tc.before + tc.secret + tc.after)
	}
	for _, line := range corpus(f, "lookalikes.txt") {
		f.Add(unescaped.Replace(line))
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, n := Redact(text)
		if n == 0 && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if n != strings.Count(got, "[redacted:")-strings.Count(text, "[redacted:") && !strings.Contains(text, "[redacted:") {
			t.Errorf("%d secrets in %q", n, got)
		}
		if again, _ := Redact(got); again != got {
			t.Errorf("%q became %q, and that %q", text, got, again)
		}
	})
}
