package graphiti

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// unreadable stands for words that may be anything, also what was said.
const unreadable = "its words are left out, as they may quote the turn"

// maxProblems bounds how many of a server's complaints are read.
const maxProblems = 10

// Sanitize is what a server said about messages that it refused, without what it
// quotes of them. Its words may be in any form, and may have been cut off.
func Sanitize(err error, sent []Message) string {
	var s *StatusError
	if !errors.As(err, &s) || strings.TrimSpace(s.Detail) == "" {
		return err.Error()
	}
	var words []string
	said := sayings(sent)
	for _, p := range serverWords(strings.TrimSpace(s.Detail)) {
		what := strings.Join(strings.Fields(unescaped(p.what)), " ")
		if what = said.without(what); p.where != "" {
			what = p.where + ": " + what
		}
		words = append(words, what)
	}
	if len(words) == 0 {
		words = append(words, unreadable)
	}
	return err.Error() + ": " + strings.ToValidUTF8(strings.Join(words, "; "), "")
}

// problem is what a server complains of: what is wrong, and where in the
// request, as far as it says so.
type problem struct{ where, what string }

// serverWords are the part of an answer that was written by the server. Of JSON
// only those members are read that say what is wrong; of a text that which
// comes before anything that could be a quote.
func serverWords(detail string) []problem {
	if detail[0] != '{' && detail[0] != '[' {
		if detail = beforeQuote(detail); detail == "" {
			return nil
		}
		return []problem{{"", detail}}
	}
	r := problemReader{Decoder: json.NewDecoder(strings.NewReader(detail))}
	_ = r.value() // what could be read of it counts
	return r.problems
}

// problemReader reads FastAPI's errors, {"detail":[{"type":…,"loc":[…],"msg":…,
// "input":…}]}, of which input quotes, and what other servers make of theirs.
type problemReader struct {
	*json.Decoder
	problems []problem
}

// value reads a text that says what is wrong, or what holds one.
func (r *problemReader) value() error {
	token, err := r.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return r.object()
	case token == json.Delim('['):
		for err == nil && r.More() {
			err = r.value()
		}
		if err == nil {
			_, err = r.Token() // its end
		}
		return err
	}
	if text, ok := token.(string); ok {
		return r.add("", text)
	}
	return nil
}

// object reads an object whose beginning was read. Its members may come in any
// order, and it may end in their middle.
func (r *problemReader) object() (err error) {
	var where, what string
	for err == nil && r.More() {
		var key json.Token
		if key, err = r.Token(); err != nil {
			break
		}
		switch key {
		case "loc":
			where, err = r.place()
		case "msg":
			err = r.Decode(&what)
		case "detail", "error", "message":
			err = r.value()
		default:
			err = r.Decode(&json.RawMessage{})
		}
	}
	if what != "" {
		err = errors.Join(err, r.add(where, what))
	}
	if err == nil {
		_, err = r.Token() // its end
	}
	return err
}

func (r *problemReader) add(where, what string) error {
	if r.problems = append(r.problems, problem{where, what}); len(r.problems) == maxProblems {
		return io.EOF
	}
	return nil
}

// fieldName is how the fields of our requests are called.
var fieldName = regexp.MustCompile(`^[a-z_]{1,32}$`)

// place reads where in the request something is wrong: names and positions.
func (r *problemReader) place() (string, error) {
	var path []any
	if err := r.Decode(&path); err != nil {
		return "", err
	}
	names := make([]string, len(path))
	for i, p := range path {
		name, ok := p.(string)
		if names[i] = fmt.Sprint(p); ok && !fieldName.MatchString(name) {
			names[i] = gap
		}
	}
	return strings.Join(names, "."), nil
}

// quotation begins what may be a quote in a text: a mark that does not stand
// within a word, markup, or a name that is followed by a value.
var quotation = regexp.MustCompile("(?i)(?:^|[^\\pL\\pN])['’]|[\"`“”„«»‹›‘{\\[<]|&(?:quot|lt|#)|\\b(?:input|value|content|body|input_value)\\s*[:=]")

func beforeQuote(text string) string {
	if at := quotation.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return strings.TrimSpace(text)
}

var escapes = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)`)

// unescaped is a text as it was before somebody wrote it in their notation.
func unescaped(s string) string {
	return escapes.ReplaceAllStringFunc(html.UnescapeString(s), func(e string) string {
		if len(e) > 2 && (e[1] == 'u' || e[1] == 'x') {
			if n, err := strconv.ParseUint(e[2:], 16, 32); err == nil {
				return string(rune(n))
			}
		}
		if strings.Contains("nrtfbv", e[1:]) {
			return " "
		}
		return e[1:]
	})
}

// word is a word's place in a text, and the word in lower case.
type word struct {
	start, end int
	text       string
}

// wordsIn finds the words of a text. Where a script does not part them each
// character is one.
func wordsIn(s string) (list []word) {
	open := false // the last one goes on
	for i, r := range s {
		alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
		inside := unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
		if inside && (!open || alone) {
			list = append(list, word{start: i})
		}
		if open = inside && !alone; inside {
			list[len(list)-1].end = i + len(string(r))
		}
	}
	for i := range list {
		list[i].text = strings.ToLower(s[list[i].start:list[i].end])
	}
	return list
}

// saying holds the words of what was sent, and which of them follow each other.
type saying struct {
	words map[string]bool
	pairs map[[2]string]bool
}

func sayings(sent []Message) *saying {
	s := &saying{make(map[string]bool), make(map[[2]string]bool)}
	for i := range sent {
		before := ""
		for _, w := range wordsIn(unescaped(sent[i].Content)) {
			s.words[w.text], s.pairs[[2]string{before, w.text}] = true, true
			before = w.text
		}
	}
	return s
}

// gap stands in place of a quote.
const gap = "…"

// without takes out of a text what was sent: two words that follow each other
// there, a number, what stands in quotation marks, and the pieces of words
// beside that. The cost is linear in what was sent.
func (s *saying) without(text string) string {
	list := wordsIn(text)
	quoted := make([]bool, len(list))
	for i, w := range list {
		if i > 0 && s.pairs[[2]string{list[i-1].text, w.text}] {
			quoted[i-1], quoted[i] = true, true
		}
		if s.words[w.text] && (strings.ContainsFunc(w.text, unicode.IsNumber) || marked(text, w)) {
			quoted[i] = true
		}
	}
	s.addPieces(list, quoted)
	var b strings.Builder
	at := 0
	for i := 0; i < len(list); i++ {
		if !quoted[i] {
			continue
		}
		b.WriteString(text[at:list[i].start] + gap)
		for i+1 < len(list) && quoted[i+1] {
			i++
		}
		at = list[i].end
	}
	return b.String() + text[at:]
}

// marked reports whether a quotation mark stands beside a word.
func marked(text string, w word) bool {
	const marks = "\"'`“”„‘’«»‹›"
	before, after := text[:w.start], text[w.end:]
	return strings.TrimRight(before, marks) != before || strings.TrimLeft(after, marks) != after
}

// minPiece is the length, in bytes, from which a part of a word tells something.
const minPiece = 3

// addPieces adds to quotes the words beside them that are a piece of one:
// servers cut off what they quote.
func (s *saying) addPieces(list []word, quoted []bool) {
	var beside []int
	for i := range list {
		if !quoted[i] && len(list[i].text) >= minPiece && (i > 0 && quoted[i-1] || i+1 < len(list) && quoted[i+1]) {
			beside = append(beside, i)
		}
	}
	for _, i := range beside {
		for w := range s.words {
			if strings.HasPrefix(w, list[i].text) || strings.HasSuffix(w, list[i].text) {
				quoted[i] = true
				break
			}
		}
	}
}
