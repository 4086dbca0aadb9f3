package graphiti

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

const (
	// unreadable replaces an answer without words of the vocabulary.
	unreadable = "its words are left out, as they may quote the turn"

	gap         = "…" // replaces omitted words
	maxProblems = 10  // problems read per answer
	maxWords    = 100 // words read per problem
)

// vocabulary holds the words of servers' error messages and the proxy's field names. Any
// other word of an answer may quote the turn.
var vocabulary = func() map[string]bool {
	words := make(map[string]bool)
	for _, w := range strings.Fields(`
		a all allowed an and any are argument array as at be bool boolean bytes cannot character characters client contain contains could
		datetime decode dictionary did do does empty entity enum error errors exceed exceeded exceeds expected extra failed field fields for
		forbidden format found from got group has have header in input int integer invalid is it items json key large length less limit list
		long longer match maximum media member message minimum missing model more most must no none not null number object of one or other
		outside parameter parse parsing pattern payload permitted range rejected request required schema should size string such than the
		timezone to token tokens too type types unable unexpected unknown unprocessable unsupported utf validation value values was with wrong
		body content episode_body group_id messages name reference_time role role_type source source_description timestamp uuid
		assistant system user add_memory add_episode`) {
		words[w] = true
	}
	return words
}()

// Sanitize describes a server's rejection of messages without quoting them: it retains only
// words of the vocabulary and the place in the request. The answer may have any format and
// may be truncated.
func Sanitize(err error) string {
	var s *StatusError
	if !errors.As(err, &s) || strings.TrimSpace(s.Detail) == "" {
		return err.Error()
	}
	problems := problemsIn(strings.TrimSpace(s.Detail))
	if len(problems) == 0 {
		problems = []string{unreadable}
	}
	return err.Error() + ": " + strings.Join(problems, "; ")
}

// problemsIn parses FastAPI's errors, {"detail":[{"loc":[…],"msg":…,"input":…}]}, whose input
// quotes the request, the errors of other servers, and plain text.
func problemsIn(detail string) (problems []string) {
	add := func(where string, what gjson.Result) {
		if words := known(what.String()); words != "" && len(problems) < maxProblems {
			problems = append(problems, where+words)
		}
	}
	if detail[0] != '{' && detail[0] != '[' {
		add("", gjson.Result{Type: gjson.String, Str: detail})
		return problems
	}
	for _, path := range []string{"detail", "error", "message", "error.message"} {
		switch v := gjson.Get(detail, path); {
		case v.Type == gjson.String:
			add("", v)
		case v.IsArray():
			v.ForEach(func(_, p gjson.Result) bool {
				add(placeIn(p.Get("loc")), p.Get("msg"))
				return len(problems) < maxProblems
			})
		}
	}
	return problems
}

// placeIn returns the place of a problem in the request.
func placeIn(loc gjson.Result) string {
	var path []string
	loc.ForEach(func(_, step gjson.Result) bool {
		switch {
		case step.Type == gjson.Number:
			path = append(path, fmt.Sprint(step.Int()))
		case vocabulary[step.Str]:
			path = append(path, step.Str)
		default:
			path = append(path, gap)
		}
		return true
	})
	if path == nil {
		return ""
	}
	return strings.Join(path, ".") + ": "
}

// known removes all words outside the vocabulary. It returns "" if no word remains.
func known(text string) string {
	var out []string
	any := false
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' }) {
		if len(out) == maxWords {
			break
		}
		if vocabulary[strings.ToLower(w)] {
			out, any = append(out, w), true
		} else if len(out) == 0 || out[len(out)-1] != gap {
			out = append(out, gap)
		}
	}
	if !any {
		return ""
	}
	return strings.Join(out, " ")
}

// Truncate truncates s to at most n bytes, between two characters.
func Truncate[T string | []byte](s T, n int) T {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// OneLine returns the start of a text as one line of at most n characters.
func OneLine(s string, n int) string {
	return Shorten(strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*n)], "")), " "), gap, n)
}

// LinesOmitted replaces lines of a stored text that resemble the lines before them.
const LinesOmitted = gap + "\n"

// Shorten truncates s to at most n characters, including the mark at its end.
func Shorten(s, mark string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	keep := n - utf8.RuneCountInString(mark)
	for i := range s {
		if keep == 0 {
			return s[:i] + mark
		}
		keep--
	}
	return s
}

// ShortenMiddle truncates s to at most n characters, including the mark in its middle. It
// retains both ends, because people write before and after pasted text.
func ShortenMiddle(s, mark string, n int) string {
	count := utf8.RuneCountInString(s)
	if count <= n {
		return s
	}
	keep := n - utf8.RuneCountInString(mark)
	head, tail := keep-keep/2, count-keep/2
	from, at := 0, 0
	for i := range s {
		if at == head {
			from = i
		}
		if at == tail {
			return s[:from] + mark + s[i:]
		}
		at++
	}
	return s[:from] + mark
}
