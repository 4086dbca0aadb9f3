package graphiti

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// answered422 returns the stored error of a 422 answer, which is cut to 8 KiB.
func answered422(detail string) error {
	return &StatusError{Code: 422, Detail: detail[:min(len(detail), 8<<10)]}
}

const said422 = "the memory service answered 422 Unprocessable Entity"

// TestRefusedTurnKeepsTheServersWords checks that the stored error has the words of the
// server's vocabulary, and none of the request, wherever the server quotes it.
func TestRefusedTurnKeepsTheServersWords(t *testing.T) {
	long := strings.Repeat("short line\n", 2000)
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"no words", answered422(""), said422},
		{"no status", errors.New("x"), "x"},
		{"FastAPI's", answered422(`{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{"content":"the PIN of my card is 1234"}}]}`),
			said422 + ": body.messages.0.role: Field required"},
		{"two problems", answered422(`{"detail":[{"loc":["body",1],"msg":"extra fields"},{"loc":["body",2],"msg":"value missing"}]}`), said422 + ": body.1: extra fields; body.2: value missing"},
		{"a place only", answered422(`{"detail":[{"loc":["body",1],"msg":"nonsense"}]}`), said422 + ": " + unreadable},
		{"cut off within the input", answered422(`{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{"content":"` + long + `"}}]}`),
			said422 + ": body.messages.0.role: Field required"},
		{"cut off within the second input", answered422(`{"detail":[{"loc":["body"],"msg":"empty","input":"x"},{"loc":["name"],"msg":"too long","input":"my PIN ` + long), said422 + ": body: empty; name: too long"},
		{"the input comes first and is cut off", answered422(`{"detail":[{"input":{"content":"my PIN ` + long + `"},"msg":"Field required"}]}`), said422 + ": " + unreadable},
		{"a place that is not ours", answered422(`{"detail":[{"loc":["body","my card"],"msg":"missing"}]}`), said422 + ": body.…: missing"},
		{"a text", answered422(`{"detail":"invalid value: my PIN 1234!"}`), said422 + ": invalid value …"},
		{"a text that is cut off", answered422(`{"detail":"invalid value: PIN 1234` + long), said422 + ": " + unreadable},
		{"another server's", answered422(`{"error":{"code":3,"message":"too large"}}`), said422 + ": too large"},
		{"an error that is a text", answered422(`{"error":"too large"}`), said422 + ": too large"},
		{"nothing to be read", answered422(`{"code":3,"content":"my PIN"}`), said422 + ": " + unreadable},
		{"no JSON after all", answered422(`{my card}`), said422 + ": " + unreadable},
		{"a page", answered422("<h1>too\n large</h1>"), said422 + ": … too large …"},
		{"plain words", answered422("request entity too\n large"), said422 + ": request entity too large"},
		{"plain words that quote", answered422("my card 1234, that field"), said422 + ": … field"},
		{"nothing but a quote", answered422("my card 1234"), said422 + ": " + unreadable},
		{"a tool's", answered422("1 validation error for add_memory\nname\n  Field required [type=missing, input_value={'content': 'my card'}]"),
			said422 + ": … validation error for add_memory name Field required type missing … content …"},
		{"escapes", answered422(`{"detail":"invalid: my\\nPIN\\u0020card"}`), said422 + ": invalid …"},
		{"no spaces between words", answered422(`{"detail":"invalid: 密码是四 value"}`), said422 + ": invalid … value"},
	} {
		if diff := cmp.Diff(tc.want, Sanitize(tc.err)); diff != "" {
			t.Errorf("%s: Sanitize (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestServersWordsQuoteNothing checks that the stored error has no quoted word, in any
// notation of the quotation.
func TestServersWordsQuoteNothing(t *testing.T) {
	quoteJSON := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	notations := map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"JSON":     quoteJSON,
		"Go":       func(s string) string { return fmt.Sprintf("%+q", s) },
		"HTML":     html.EscapeString,
		"Python": func(s string) string {
			return "'" + strings.NewReplacer("\n", `\n`, "'", `\'`, "ö", `\xf6`).Replace(s) + "'"
		},
		"one line": func(s string) string { return strings.Join(strings.Fields(s), " ") },
	}
	frames := map[string]func(string) string{
		"plain":        func(s string) string { return "cannot parse " + s + " in body" },
		"a text":       func(s string) string { return `{"detail":` + quoteJSON("cannot parse "+s+" in body") + `}` },
		"a message":    func(s string) string { return `{"detail":[{"loc":["body"],"msg":` + quoteJSON("not "+s) + `}]}` },
		"a place":      func(s string) string { return `{"detail":[{"loc":[` + quoteJSON(s) + `],"msg":"missing"}]}` },
		"an input":     func(s string) string { return `{"detail":[{"msg":"missing","input":` + quoteJSON(s) + `}]}` },
		"cut off":      func(s string) string { return `{"detail":[{"msg":"missing","input":` + quoteJSON(s)[:len(s)/2+1] },
		"broken":       func(s string) string { return `{"detail":` + s },
		"another list": func(s string) string { return `[` + quoteJSON(s) + `]` },
	}
	parts := []string{"pässword", "Anna", "zürich", "42", "\"hello\"", "bob's", "line\nbreak", "q\\b", "<b>", "löwe", "x1234", "O'Neil"}
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "said")
		quote := notations[rapid.SampledFrom([]string{"as it is", "JSON", "Go", "HTML", "Python", "one line"}).Draw(t, "notation")](strings.Join(said, " "))
		detail := frames[rapid.SampledFrom([]string{"plain", "a text", "a message", "a place", "an input", "cut off", "broken", "another list"}).Draw(t, "frame")](quote)
		got := strings.TrimPrefix(Sanitize(answered422(detail)), said422)
		for _, w := range []string{"pässword", "Anna", "zürich", "42", "hello", "bob", "line", "break", "<b>", "löwe", "1234", "Neil"} {
			if strings.Contains(got, w) {
				t.Fatalf("Sanitize of %q keeps %q: %q", detail, w, got)
			}
		}
	})
}
