package redact

import (
	"strings"
	"unicode"
)

// kind is what a name says about its value.
type kind string

const (
	password kind = "password" // somebody thought of it, or it is random
	secret   kind = "secret"   // likewise, and not of several words
	token    kind = "token"    // a generator made it
)

// ending is an ending of names whose values are secrets.
type ending struct {
	word  string
	kind  kind
	apart bool // it is a word by itself, and not the end of another one
}

// endings are the endings of names whose values are secrets, by their beginnings. The first
// that fits counts.
var endings = []struct {
	stem string
	list []ending
}{
	{"pass", []ending{{"passphrase", password, false}, {"password", password, false}, {"passwort", password, false}, {"passwd", password, false}, {"pass", password, true}}},
	{"pw", []ending{{"pwd", password, true}, {"pw", password, true}}},
	{"kennwort", []ending{{"kennwort", password, false}}},
	{"wachtwoord", []ending{{"wachtwoord", password, false}}},
	{"senha", []ending{{"senha", password, true}}},
	{"contrasena", []ending{{"contrasena", password, false}}},
	{"mnemonic", []ending{{"mnemonic", password, true}}},
	{"seed", []ending{{"seed_phrase", password, true}, {"seedphrase", password, true}}},
	{"secret", []ending{{"secret", secret, false}}},
	{"token", []ending{{"token", token, false}}},
	{"key", []ending{{"key", token, false}}}, // of some kinds; see keys
	{"cred", []ending{{"credentials", token, false}, {"credential", token, false}, {"creds", token, true}}},
	{"pat", []ending{{"pat", token, true}}},
	{"_auth", []ending{{"_auth", token, false}}},
}

// keys are what a key must be for to be a secret.
var keys = []string{
	"api", "access", "private", "secret", "auth", "encryption", "encrypt", "signing", "master", "account", "subscription", "license",
	"app", "webhook", "service", "role", "admin", "deploy", "hmac", "crypt", "crypto", "session", "jwt", "shared", "client", "bot", "pass",
}

// suffixes are what may stand behind the ending of a name.
var suffixes = []string{"_value", "_prod", "_production", "_dev", "_test", "_staging", "_live", "_old", "_new", "_base"}

const (
	maxName   = 80      // bytes of a name that are read
	maxSpaces = 40      // before and behind a sign of assignment
	maxValue  = 2 << 10 // bytes of a value that decide; all of it is redacted
)

// named is a name in the text whose value may be a secret.
type named struct {
	kind     kind
	from, to int
	upper    bool   // it is written as environment variables are
	bare     bool   // it is nothing but the ending
	word     string // the ending
	first    bool   // only blanks and the like stand before it on its line
}

// settings finds secrets as values of settings: in shells, files of many kinds, code and
// addresses.
func (s *scan) settings() {
	for _, e := range endings {
		done := 0
		for at := range s.places(e.stem) {
			if at < done {
				continue
			}
			n, ok := s.nameAt(at, e.stem, e.list)
			if !ok {
				continue
			}
			if v, ok := s.valueOf(&n); ok && v.to > v.from && n.holds(s.text[v.from:v.to], &v) {
				s.found(string(n.kind), v.from, s.rest(v.from, v.to))
				done = v.to
			}
		}
	}
}

// nameAt reads the whole name around a part of it at a place.
func (s *scan) nameAt(at int, stem string, list []ending) (n named, ok bool) {
	var e *ending
	for i := range list {
		if strings.HasPrefix(s.lower[at:], list[i].word) {
			e = &list[i]
			break
		}
	}
	if e == nil {
		return n, false
	}
	n.kind, n.word, n.to = e.kind, e.word, s.suffix(at+len(e.word))
	if e.kind == secret && strings.HasPrefix(s.lower[n.to:], "_id") {
		n.to += len("_id")
	}
	if n.to < len(s.text) && (isName(s.text[n.to]) || s.text[n.to] == '.' && n.to+1 < len(s.text) && isName(s.text[n.to+1])) {
		return n, false
	}
	for n.from = at; n.from > 0 && at-n.from < maxName && (isName(s.text[n.from-1]) || s.text[n.from-1] == '.'); n.from-- {
	}
	if n.from > 0 && n.from < at && s.text[n.from-1] == '\\' && strings.IndexByte("nrt", s.text[n.from]) >= 0 {
		n.from++ // a line's end, as strings have it
	}
	for n.from < at && (s.text[n.from] == '-' || s.text[n.from] == '.') {
		n.from++
	}
	if strings.HasSuffix(s.text[:n.from], "[redacted:") {
		return n, false
	}
	if stem == "key" && n.from == at {
		n.from = s.wordBefore(at)
	}
	before := s.lower[n.from:at]
	if e.apart && before != "" && isAlnum(s.text[at-1]) && (!isUpper(s.text[at]) || !isLower(s.text[at-1])) {
		return n, false
	}
	if stem == "key" && !endsWithAny(strings.TrimRight(before, "_-. "), keys) {
		return n, false
	}
	name := s.text[n.from:n.to]
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	n.upper, n.bare = strings.IndexFunc(name, unicode.IsLower) < 0 && !strings.Contains(name, " "), before == ""
	switch {
	case e.word == "pat" && (!n.upper || n.bare), // path, pattern, a name
		e.word == "pwd" && n.upper && (n.bare || before == "old"), // a directory
		e.word == "_auth" && !n.bare,
		e.word == "credential" && (before == "x-amz-" || before == "x-goog-"): // who signed an address
		return n, false
	}
	n.first = s.firstOnLine(n.from)
	return n, true
}

// wordBefore returns where a name begins whose last word stands at a place, as in
// "encryption key".
func (s *scan) wordBefore(at int) int {
	if at < 2 || s.text[at-1] != ' ' {
		return at
	}
	from := at - 1
	for from > 0 && at-from < maxName && isLetter(s.text[from-1]) {
		from--
	}
	return from
}

func (s *scan) suffix(at int) int {
	if at == len(s.text) || s.text[at] != '_' && !isDigit(s.text[at]) {
		return at
	}
	for _, x := range suffixes {
		if strings.HasPrefix(s.lower[at:], x) {
			at += len(x)
			break
		}
	}
	end := at
	if end < len(s.text) && s.text[end] == '_' {
		end++
	}
	for n := 0; n < 3 && end < len(s.text) && isDigit(s.text[end]); n++ {
		end++
		at = end
	}
	return at
}

func endsWithAny(s string, list []string) bool {
	for _, x := range list {
		if strings.HasSuffix(s, x) {
			return true
		}
	}
	return false
}

// firstOnLine reports whether a place is the first on its line, as a setting in a file is.
func (s *scan) firstOnLine(at int) bool {
	from := max(0, at-maxSpaces)
	line := s.lower[from:at]
	i := strings.LastIndexByte(line, '\n')
	if i < 0 && from > 0 {
		return false
	}
	switch strings.Trim(line[i+1:], " \t\r-+>#$") {
	case "", "export", "set", "env", "setx", "declare", "declare -x", "env:", "arg":
		return true
	}
	return false
}

// holds reports whether a value is a secret, as its name says.
func (n *named) holds(v string, as *value) bool {
	v = start(v)
	if n.bare && n.word == "pass" && n.upper && as.colon && as.quote == 0 || // a test's result
		stands(v) || describes(v) || elsewhere(v) || as.quote == 0 && isCode(v, as.tight) {
		return false
	}
	if as.said {
		return !strings.ContainsAny(v, " \t") && telling(v) && !wordy(v) && !n.among(v) && !isCode(v, false)
	}
	set := n.upper && !as.compared && (as.quote != 0 || as.tight)
	switch {
	case as.quote != 0 && strings.ContainsAny(v, " \t"):
		return len(v) >= 8 && v == strings.TrimSpace(v) && !isProse(v) && (n.kind == password || set && n.kind == secret || !wordyText(v))
	case n.kind != token && (set || as.quote != 0 && !as.compared):
		return len(v) >= 4 && (!n.bare || !as.colon || as.quote != 0 || telling(v))
	case n.kind == password:
		return telling(v) && !n.among(v) || as.tight && as.ownLine && len(v) >= 6 && !isCode(v, false)
	case set:
		return len(v) >= 6 && isMade(v) && (as.quote == 0 && !n.bare || !wordy(v) || len(parts(v)) > 2)
	}
	return len(v) >= 6 && !wordy(v) && telling(v) && !n.among(v) && (n.kind == secret || isMade(v))
}

// isMade reports whether a generator may have made a value; some of them use all
// signs, as Django's does.
func isMade(v string) bool { return isToken(v) || len(v) >= tokenLen && mixes(v, 40) }

// among reports whether a value is itself such a name, as in token = authToken2.
func (n *named) among(v string) bool {
	for _, p := range parts(v) {
		if p = strings.Trim(p, "0123456789"); p != "" && strings.HasPrefix(string(n.kind), p) || p == "token" || p == "key" || p == "pw" {
			return identifier(v)
		}
	}
	return false
}

// wordyText reports whether a text is made of words alone.
func wordyText(v string) bool {
	for _, w := range strings.Fields(v) {
		if !wordy(strings.Trim(w, ".,;:!?()")) {
			return false
		}
	}
	return true
}
