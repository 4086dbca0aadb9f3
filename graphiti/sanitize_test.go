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

// answered422 is what a server answers, as it is kept: the rest was cut off.
func answered422(detail string) error {
	return &StatusError{Code: 422, Detail: detail[:min(len(detail), 8<<10)]}
}

const said422 = "the memory service answered 422 Unprocessable Entity"

// TestRefusedTurnKeepsTheServersWords, without what they quote.
func TestRefusedTurnKeepsTheServersWords(t *testing.T) {
	sent := []Message{{Content: "the PIN of my card is 1234"}, {Content: "ok, 我的密码是四七一一"}}
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
		{"two problems", answered422(`{"detail":[{"loc":["body",1],"msg":"no"},{"loc":["body",2],"msg":"neither"}]}`), said422 + ": body.1: no; body.2: neither"},
		{"cut off within the input", answered422(`{"detail":[{"type":"missing","loc":["body","messages",0,"role"],"msg":"Field required","input":{"content":"` + long + `"}}]}`),
			said422 + ": body.messages.0.role: Field required"},
		{"cut off within the second input", answered422(`{"detail":[{"loc":["a"],"msg":"no","input":"x"},{"loc":["b"],"msg":"neither","input":"my PIN ` + long), said422 + ": a: no; b: neither"},
		{"the input comes first and is cut off", answered422(`{"detail":[{"input":{"content":"my PIN ` + long + `"},"msg":"Field required"}]}`), said422 + ": " + unreadable},
		{"a place that is not ours", answered422(`{"detail":[{"loc":["body","my card"],"msg":"no"}]}`), said422 + ": body.…: no"},
		{"a text", answered422(`{"detail":"not this: the PIN of my card is 1234!"}`), said422 + ": not this: …!"},
		{"a text that is cut off", answered422(`{"detail":"not this: the PIN of my card is 1234` + long), said422 + ": " + unreadable},
		{"another server's", answered422(`{"error":{"code":3,"message":"too large"}}`), said422 + ": too large"},
		{"nothing to be read", answered422(`{"code":3,"content":"my PIN"}`), said422 + ": " + unreadable},
		{"no JSON after all", answered422(`{my card}`), said422 + ": " + unreadable},
		{"a page", answered422("<h1>too\n large</h1>"), said422 + ": " + unreadable},
		{"plain words", answered422("request entity too\n large"), said422 + ": request entity too large"},
		{"plain words that quote", answered422("card is 1234, he said"), said422 + ": …, he said"},
		{"plain words and a quote", answered422(`it's not valid: "ok"`), said422 + ": it's not valid:"},
		{"a tool's", answered422("1 validation error for add_memory\nname\n  Field required [type=missing, input_value={'content': 'my card is'}]"),
			said422 + ": 1 validation error for add_memory name Field required"},
		{"a value without marks", answered422("cannot take this, input: ok"), said422 + ": cannot take this,"},
		{"escapes break no quote", answered422(`{"detail":"bad: the PIN\\nof my\\u0020card"}`), said422 + ": bad: …"},
		{"no spaces between words", answered422(`{"detail":"bad: 密码是四 and so on"}`), said422 + ": bad: … and so on"},
		{"one word in marks", answered422(`{"detail":"'card' was no role, and 'tool' was none"}`), said422 + ": '…' was no role, and 'tool' was none"},
		{"a quote that was cut off", answered422(`{"detail":"bad: the PIN of my car..., and so on"}`), said422 + ": bad: …..., and so on"},
	} {
		if diff := cmp.Diff(tc.want, Sanitize(tc.err, sent)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestServersWordsQuoteNothing: however a server writes what it quotes, no two
// words of it are kept.
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
		"plain":        func(s string) string { return "cannot take " + s + " here" },
		"a text":       func(s string) string { return `{"detail":` + quoteJSON("cannot take "+s+" here") + `}` },
		"a message":    func(s string) string { return `{"detail":[{"loc":["body"],"msg":` + quoteJSON("not "+s) + `}]}` },
		"an input":     func(s string) string { return `{"detail":[{"msg":"no","input":` + quoteJSON(s) + `}]}` },
		"cut off":      func(s string) string { return `{"detail":[{"msg":"no","input":` + quoteJSON(s)[:len(s)/2+1] },
		"broken":       func(s string) string { return `{"detail":` + s },
		"another list": func(s string) string { return `[` + quoteJSON(s) + `]` },
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{"pässword", "Anna", "zürich", "42", "\"hello\"", "it's", "line\nbreak", "a\\b", "<b>", "löwe", "x1234", "O'Neil"}
		n := rapid.IntRange(2, 12).Draw(t, "parts")
		var said []string
		for range n {
			said = append(said, rapid.SampledFrom(parts).Draw(t, "part"))
		}
		from := rapid.IntRange(0, n-2).Draw(t, "from")
		to := rapid.IntRange(from+2, n).Draw(t, "to")
		quote := notations[rapid.SampledFrom([]string{"as it is", "JSON", "Go", "HTML", "Python", "one line"}).Draw(t, "notation")](strings.Join(said[from:to], " "))
		detail := frames[rapid.SampledFrom([]string{"plain", "a text", "a message", "an input", "cut off", "broken", "another list"}).Draw(t, "frame")](quote)
		sent := []Message{{Content: strings.Join(said, " ")}}
		got := Sanitize(answered422(detail), sent)
		var all []string
		for _, w := range wordsIn(strings.TrimPrefix(got, said422)) {
			all = append(all, w.text)
		}
		pairs := sayings(sent).pairs
		for i := 1; i < len(all); i++ {
			if pairs[[2]string{all[i-1], all[i]}] {
				t.Fatalf("%q of %q in %q", all[i-1:i+1], detail, got)
			}
		}
	})
}

// BenchmarkServersWords is about a long turn that a long answer refuses.
func BenchmarkServersWords(b *testing.B) {
	sent := []Message{{Content: strings.Repeat("alpha beta gamma delta ", 8000/23)}, {Content: "assistant 1"}}
	err := answered422(strings.Repeat("alpha gamma 413 request entity too large zq ", 180))
	for b.Loop() {
		Sanitize(err, sent)
	}
}
