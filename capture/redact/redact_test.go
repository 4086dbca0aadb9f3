package redact

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSecretsGo(t *testing.T) {
	missed := 0
	for _, tc := range secretsInText {
		got, n := Redact(strings.Replace(tc.text, "{}", tc.secret, 1))
		before, after, _ := strings.Cut(tc.text, "{}")
		rest, begins := strings.CutPrefix(got, before)
		kind, ends := strings.CutSuffix(rest, after)
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
	t.Logf("%d of %d secrets found", len(secretsInText)-missed, len(secretsInText))
}

var redacted = regexp.MustCompile(`^\[redacted:[a-z0-9-]+\]$`)

func TestLookAlikesStay(t *testing.T) {
	wrong := 0
	for _, text := range lookAlikes {
		if got, n := Redact(text); got != text || n != 0 {
			wrong++
			t.Errorf("%q became %q", text, got)
		}
	}
	t.Logf("%d of %d look-alikes stayed", len(lookAlikes)-wrong, len(lookAlikes))
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
	for _, tc := range secretsInText {
		f.Add(strings.ReplaceAll(tc.text, "{}", tc.secret))
	}
	for _, text := range lookAlikes {
		f.Add(text)
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

// BenchmarkRedact measures the redaction of turns and of a recall question. The keywords
// texts consist of the keywords of all rules.
func BenchmarkRedact(b *testing.B) {
	code, err := os.ReadFile("../pipeline.go")
	if err != nil {
		b.Fatal(err)
	}
	prose := strings.Repeat("I think that the token budget is key to a good answer, and the password is not. ", 100)
	var env strings.Builder
	for i := 0; env.Len() < 8000; i++ {
		fmt.Fprintf(&env, "SERVICE_%d_PASSWORD=hunter%d22x\nSERVICE_%d_API_KEY=%s\nSERVICE_%d_PORT=80\n", i, i, i, mixed(32), i)
	}
	var keywords strings.Builder
	for _, rule := range own {
		for _, k := range rule.keywords {
			keywords.WriteString(k + "_x=" + mixed(24) + " ")
		}
	}
	for _, text := range []struct{ name, text string }{
		{"prose 8KB", prose},
		{"code 7KB", string(code[:7000])},
		{"env 8KB", env.String()},
		{"question 2KB", prose[:2048]},
		{"keywords 2KB", keywords.String()[:2048]},
		{"keywords 8KB", keywords.String()[:min(8000, keywords.Len())]},
		{"prose 1MB", strings.Repeat(prose, 130)},
		{"hostile names 1MB", strings.Repeat("password=", 116000)},
		{"hostile tokens 1MB", strings.Repeat("whsec_/", 150000)},
		{"hostile headers 1MB", strings.Repeat("authorization:", 75000)},
		{"hostile paths 1MB", strings.Repeat("discord.com/api/webhooks/", 42000)},
		{"hostile keywords 1MB", strings.Repeat("eyj.", 260000)},
		{"hostile commands 1MB", strings.Repeat("mysql -p ", 116000)},
		{"hostile words 1MB", strings.Repeat("private key aws secret is ", 40000)},
		{"hostile addresses 1MB", strings.Repeat("a://b:", 175000)},
	} {
		b.Run(text.name, func(b *testing.B) {
			b.SetBytes(int64(len(text.text)))
			b.ReportAllocs()
			for b.Loop() {
				Redact(text.text)
			}
		})
	}
}
