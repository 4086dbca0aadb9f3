package redact

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed rules.json
var rulesJSON []byte

// rule describes one kind of secret, from gitleaks or own.txt.
type rule struct {
	ID       string      `json:"id"`
	Regex    string      `json:"regex"`
	Keywords []string    `json:"keywords"` // lower case; the text must contain one
	Entropy  float64     `json:"entropy"`  // the least bits for each character
	Group    int         `json:"secretGroup"`
	Allow    []allowlist `json:"allow"`
	Afar     int         `json:"afar"` // largest distance of the secret from a keyword, in bytes; 0: next to it

	own      bool // of own.txt
	keys     []keyword
	assigned bool // the secret is the value of a name that contains a keyword

	once sync.Once
	re   *regexp.Regexp
}

// allowlist describes texts that are not secrets.
type allowlist struct {
	Regexes   []string `json:"regexes"`
	Stopwords []string `json:"stopwords"` // lower case, in the secret
	Target    string   `json:"target"`    // secret, match or line

	once sync.Once
	res  []*regexp.Regexp
}

// keyword is a word without which a rule cannot match a text.
type keyword struct {
	word  string // in lower case
	exact string // as the rule spells it; empty: case does not matter
	leads bool   // a word begins with it
	names bool   // it is part of the name in an assignment
}

// assignment is part of each rule whose keyword is part of a name.
const assignment = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)`

// readRules reads the rules of gitleaks. Each expression is compiled at its first use.
func readRules() (rules []*rule, allow []allowlist, err error) {
	var file struct {
		Allow []allowlist `json:"allow"`
		Rules []*rule     `json:"rules"`
	}
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		return nil, nil, fmt.Errorf("read the rules of secrets: %w", err)
	}
	for _, r := range file.Rules {
		r.assigned = strings.Contains(r.Regex, assignment)
		for _, k := range r.Keywords {
			r.keys = append(r.keys, r.keyword(k))
		}
	}
	return file.Rules, file.Allow, nil
}

// keyword describes the use of one of a rule's keywords.
func (r *rule) keyword(word string) keyword {
	k, quoted, lower := keyword{word: word}, regexp.QuoteMeta(word), strings.ToLower(r.Regex)
	name, _, assigned := strings.Cut(lower, assignment)
	k.names = assigned && (strings.Contains(name, quoted) || !strings.Contains(lower, quoted))
	if strings.Count(lower, quoted) != 1 {
		return k
	}
	at := strings.Index(lower, quoted)
	if !strings.Contains(r.Regex[:at], "(?i") {
		k.exact = strings.ReplaceAll(r.Regex[at:at+len(quoted)], `\`, "")
	}
	k.leads = strings.Trim(r.Regex[:at], "(?i)") == `\b`
	return k
}

const (
	// before and behind are the number of bytes searched on either side of a keyword; a
	// match at their end extends the search.
	before = 128
	behind = 256

	// maxWindow bounds an extended search, in bytes.
	maxWindow = 64 << 10

	// tokenLen is the least length of a token that contains a keyword and is a secret.
	tokenLen = 16

	// valueLen is the least length of a value that its name makes a secret.
	valueLen = 10

	// nameLen bounds the part of a name before a keyword, and nameRest the part between
	// the keyword and the sign of assignment.
	nameLen  = 64
	nameRest = 48
)

// span is a part of a text.
type span struct{ from, to int }

// windows returns the parts of the text in which the rule may match.
func (s *scan) windows(r *rule) (list []span) {
	for i := range r.keys {
		k := &r.keys[i]
		for at := range s.places(k.word) {
			end := at + len(k.word)
			if n := len(list); n > 0 && list[n-1].from <= at-before && list[n-1].to >= end+behind {
				continue
			}
			w := span{at - before, s.tokenRest(end + behind)}
			switch {
			case r.own:
				var ok bool
				if w, ok = s.around(r, k, at, end); !ok {
					continue
				}
			case k.exact != "" && s.text[at:end] != k.exact, k.leads && at > 0 && (isAlnum(s.text[at-1]) || s.text[at-1] == '_'):
				continue
			case r.Afar > 0:
				if w = (span{at - r.Afar, end + r.Afar}); strings.HasPrefix(r.ID, "curl-") && !curls(s.lower[end:min(w.to, len(s.lower))]) {
					continue
				}
			case !k.names && s.inToken(at):
			case r.assigned:
				value := s.assigned(end)
				if value < 0 || s.isKnown(value-valueLen/2) {
					continue
				}
				w = span{at - nameLen, value + 3}
			default:
				continue
			}
			list = append(list, span{s.wordStart(max(w.from, 0)), min(w.to, len(s.text))})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return a.from - b.from })
	merged := list[:0]
	for _, w := range list {
		if n := len(merged); n > 0 && w.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, w.to)
			continue
		}
		merged = append(merged, w)
	}
	return merged
}

// curls reports whether the text after the word curl may be a call with a credential.
func curls(rest string) bool {
	for _, option := range []string{" -u", " -h", "\t-u", "\t-h", "\n-u", "\n-h", "--user", "--header"} {
		if strings.Contains(rest, option) {
			return true
		}
	}
	return false
}

// tokenStart returns the start of the token at a place.
func (s *scan) tokenStart(at int) int {
	at = max(at, 0)
	for n := 0; n < maxValue && at > 0 && isGraph(s.text[at-1]); n++ {
		at--
	}
	return at
}

// wordStart returns the start of the word at a place, at most before bytes away.
func (s *scan) wordStart(at int) int {
	for n := 0; n < before && at > 0 && isName(s.text[at-1]); n++ {
		at--
	}
	return at
}

// inToken reports whether a place is within a token that is long enough for a secret.
func (s *scan) inToken(at int) bool {
	from, to := at, at
	for from > 0 && at-from < tokenLen && isGraph(s.text[from-1]) {
		from--
	}
	for to < len(s.text) && to-from < tokenLen && isGraph(s.text[to]) {
		to++
	}
	return to-from >= tokenLen
}

// assigned returns the end of the value whose name ends at or shortly after a place; -1 if
// it is not assigned a value of at least valueLen bytes.
func (s *scan) assigned(at int) int {
	for end := min(at+nameRest, len(s.text)); at < end; at++ {
		c := s.text[at]
		if isName(c) || isSpace(c) || c == '"' || c == '\'' || c == '.' {
			continue
		}
		if strings.IndexByte("=:>|?,", c) < 0 {
			return -1
		}
		for n := 0; n < 10 && at < len(s.text) && strings.IndexByte("=:>|?,`'\" \t\r\n", s.text[at]) >= 0; n++ {
			at++
		}
		from := at
		for at < len(s.text) && at-from < maxValue && isGraph(s.text[at]) {
			at++
		}
		if at-from < valueLen {
			return -1
		}
		return at
	}
	return -1
}

func isGraph(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '`' }
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isName(c byte) bool  { return isAlnum(c) || c == '_' || c == '-' }
func isValue(c byte) bool { return isName(c) || c == '.' || c == '+' || c == '/' || c == '=' }
func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool {
	return isLower(c) || isUpper(c)
}

// byRules finds the secrets that match some rules; ok is false if the deadline passed.
func (s *scan) byRules(rules []*rule, allow []allowlist, late func() bool) (list []found, ok bool) {
	for _, r := range rules {
		where := s.windows(r)
		if len(where) > 0 && late() {
			return nil, false
		}
		list = s.byRule(list, r, allow, where)
	}
	return list, true
}

// joint returns the most bytes between two lines of a match: only our own rules match
// several lines.
func (r *rule) joint() int {
	if r.own {
		return 16
	}
	return 0
}

// byRule finds the secrets that match one rule in some parts of the text.
func (s *scan) byRule(list []found, r *rule, allow []allowlist, where []span) []found {
	for _, w := range where {
		r.once.Do(func() { r.re = regexp.MustCompile(r.Regex) })
		for {
			matches := r.re.FindAllStringSubmatchIndex(s.text[w.from:w.to], -1)
			if n := len(matches); n > 0 && w.from+matches[n-1][1]+r.joint() >= w.to && w.to < len(s.text) && w.to-w.from < maxWindow {
				w.to = min(w.from+2*(w.to-w.from), len(s.text)) // the match may be longer
				continue
			}
			for _, m := range matches {
				if secret, ok := s.matched(r, allow, w.from, m); ok {
					list = append(list, secret)
				}
			}
			break
		}
	}
	return list
}

// matched returns the secret in a match; at is the start of the searched part of the text.
func (s *scan) matched(r *rule, allow []allowlist, at int, m []int) (f found, ok bool) {
	from, to := r.secret(m)
	if from < 0 || from == to {
		return f, false
	}
	if r.own {
		if !s.mine(r, span{at + m[0], at + m[1]}, span{at + from, at + to}) {
			return f, false
		}
		return found{at + from, s.rest(at+from, at+to), r.ID}, true
	}
	secret, match, line := s.text[at+from:at+to], s.text[at+m[0]:at+m[1]], lineAround(s.text, at+m[0], at+m[1])
	if r.Entropy > 0 && entropy(secret) <= r.Entropy || allowed(allow, secret, match, line) || allowed(r.Allow, secret, match, line) {
		return f, false
	}
	if r.ID == "generic-api-key" && (wordy(secret) || isCode(secret, false) || identifies(secret) && !confides(match) || strings.Contains(match, " h1:")) {
		return f, false // go.sum has h1:
	}
	return found{at + from, at + to, r.ID}, true
}

// wholeMatch is the secretGroup of a rule whose whole match is the secret.
const wholeMatch = -1

// secret returns the part of a match that is the secret itself: the group that the rule
// names, else the first group with a text, else the whole match.
func (r *rule) secret(m []int) (start, end int) {
	if r.Group == wholeMatch {
		return m[0], m[1]
	}
	if r.Group > 0 && 2*r.Group+1 < len(m) {
		return m[2*r.Group], m[2*r.Group+1]
	}
	for i := 2; i+1 < len(m); i += 2 {
		if m[i] >= 0 && m[i] < m[i+1] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

func allowed(lists []allowlist, secret, match, line string) bool {
	for i := range lists {
		l := &lists[i]
		l.once.Do(func() {
			for _, re := range l.Regexes {
				l.res = append(l.res, regexp.MustCompile(re))
			}
		})
		target := secret
		switch l.Target {
		case "match":
			target = match
		case "line":
			target = line
		}
		for _, re := range l.res {
			if re.MatchString(target) {
				return true
			}
		}
		lower := strings.ToLower(secret)
		for _, w := range l.Stopwords {
			if strings.Contains(lower, w) {
				return true
			}
		}
	}
	return false
}

// maxLine bounds the bytes of a line that are read on either side of a match.
const maxLine = 1 << 10

// lineAround returns the text from the start of from's line to the end of to's line, at
// most maxLine bytes on either side.
func lineAround(text string, from, to int) string {
	lo, hi := max(0, from-maxLine), min(len(text), to+maxLine)
	start := lo + strings.LastIndexByte(text[lo:from], '\n') + 1
	if i := strings.IndexByte(text[to:hi], '\n'); i >= 0 {
		hi = to + i
	}
	return text[start:hi]
}
