package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// secretKind is the kind of secret that a name announces.
type secretKind string

const (
	password secretKind = "password" // made up by a person, or random
	secret   secretKind = "secret"   // likewise, but not of several words
	token    secretKind = "token"    // random
	pin      secretKind = "pin"      // some digits
	otpSeed  secretKind = "otp-seed" // base32
	phrase   secretKind = "seed-phrase"
)

// ending ends the names of secrets.
type ending struct {
	word  string
	kind  secretKind
	apart bool // it is a word of its own, and not the end of another one
}

// endings are the endings of the names of secrets, by their stems. The first that matches
// counts.
var endings = []struct {
	stem string
	list []ending
}{
	{"pass", []ending{{"passphrase", password, false}, {"password", password, false}, {"passwort", password, false}, {"passwd", password, false}, {"pass", password, true}}},
	{"pw", []ending{{"pwd", password, true}, {"pw", password, true}}},
	{"kennwort", []ending{{"kennwort", password, false}}},
	{"wachtwoord", []ending{{"wachtwoord", password, false}}},
	{"senha", []ending{{"senha", password, true}}},
	{"contrase", []ending{{"contrasena", password, false}, {"contraseña", password, false}}},
	{"mot de passe", []ending{{"mot de passe", password, true}}},
	{"ароль", []ending{{"ароль", password, false}}}, // Russian
	{"has\u0142o", []ending{{"has\u0142o", password, false}}},
	{"haslo", []ending{{"haslo", password, true}}},
	{"clave", []ending{{"clave", password, true}}},
	{"losenord", []ending{{"losenord", password, false}}},
	{"l\u00f6senord", []ending{{"l\u00f6senord", password, false}}},
	{"parola", []ending{{"parola", password, true}}},
	{"\u015fifre", []ending{{"\u015fifre", password, false}}},
	{"パスワード", []ending{{"パスワード", password, false}}},
	{"暗証番号", []ending{{"暗証番号", pin, false}}},
	{"密碼", []ending{{"密碼", password, false}}},
	{"비밀번호", []ending{{"비밀번호", password, false}}},
	{"암호", []ending{{"암호", password, false}}},
	{"รหัสผ่าน", []ending{{"รหัสผ่าน", password, false}}},
	{"पासवर्ड", []ending{{"पासवर्ड", password, false}}},
	{"كلمة المرور", []ending{{"كلمة المرور", password, false}}},
	{"كلمة السر", []ending{{"كلمة السر", password, false}}},
	{"\u5bc6\u7801", []ending{{"\u5bc6\u7801", password, false}}}, // Chinese
	{"mnemonic", []ending{{"mnemonic phrase", phrase, true}, {"mnemonic", phrase, true}}},
	{"seed", []ending{{"seed_phrase", phrase, true}, {"seedphrase", phrase, true}, {"seed phrase", phrase, true}}},
	{"recovery phrase", []ending{{"recovery phrase", phrase, true}}},
	{"otp seed", []ending{{"otp seed", otpSeed, false}}},
	{"fa seed", []ending{{"fa seed", otpSeed, false}}},
	{"pin", []ending{{"pin", pin, true}}},
	{"secret", []ending{{"secret_key", secret, false}, {"secret", secret, false}}},
	{"token", []ending{{"token", token, false}}},
	{"api", []ending{{"api_key", token, false}, {"api-key", token, false}, {"api key", token, false}}},
}

// suffixes may follow the ending of a name.
var suffixes = []string{"_value", "_prod", "_production", "_dev", "_test", "_staging", "_live", "_old", "_new", "_base"}

const (
	maxName   = 80      // bytes of a name that are read
	maxSpaces = 40      // before and after a sign of assignment
	maxValue  = 2 << 10 // bytes of a value that decide; all of it is redacted
)

// named is a name in the text whose value may be a secret.
type named struct {
	kind     secretKind
	from, to int
	upper    bool   // it has no lower-case letters, like an environment variable
	bare     bool   // it is only the ending
	word     string // the ending
	first    bool   // only blanks, a prompt or a word such as export precede it on its line
}

// settings finds the secrets that are values of names: in shells, files of many kinds,
// code, addresses and sentences.
func (s *scan) settings(list []found) []found {
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
				list = append(list, found{v.from, s.rest(v.from, v.to), string(n.kind)})
				done = v.to
			}
		}
	}
	return list
}

// nameAt reads the whole name around the stem of an ending at a place.
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
	if n.to < len(s.text) && (isName(s.text[n.to]) || s.text[n.to] == '.' && n.to+1 < len(s.text) && isName(s.text[n.to+1])) {
		return n, false
	}
	for n.from = at; n.from > 0 && at-n.from < maxName && (isName(s.text[n.from-1]) || s.text[n.from-1] == '.'); n.from-- {
	}
	for n.from < at && (s.text[n.from] == '-' || s.text[n.from] == '.') {
		n.from++
	}
	if strings.HasSuffix(s.text[:n.from], "[redacted:") {
		return n, false
	}
	before := s.lower[n.from:at]
	if e.apart && before != "" && isAlnum(s.text[at-1]) && (!isUpper(s.text[at]) || !isLower(s.text[at-1])) {
		return n, false
	}
	name := s.text[n.from:n.to]
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	n.upper, n.bare = strings.IndexFunc(name, unicode.IsLower) < 0 && !strings.Contains(name, " "), before == ""
	if e.word == "pwd" && n.upper && (n.bare || before == "old") { // a directory
		return n, false
	}
	n.first = s.firstOnLine(n.from)
	return n, true
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

// firstOnLine reports whether only blanks, a prompt or a word such as export precede a
// place on its line.
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

// holds reports whether a value is a secret of the kind that its name announces.
func (n *named) holds(v string, as *value) bool {
	switch n.kind {
	case pin:
		return len(v) >= 4 && len(v) <= 12 && strings.Trim(v, "0123456789") == ""
	case otpSeed:
		return len(v) >= tokenLen && strings.Trim(strings.ToUpper(v), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567=") == ""
	case phrase, password, secret, token:
		if as.words {
			return true
		}
	}
	v = start(v)
	if as.said && (strings.ContainsAny(v, " \t") || !mixes(v, 20)) { // most sentences
		return false
	}
	if n.bare && n.word == "pass" && n.upper && as.colon && as.quote == 0 || // a test's result
		isPlaceholder(v) || describes(v) || elsewhere(v) || as.quote == 0 && isCode(v, as.tight) {
		return false
	}
	if as.said {
		return telling(v) && !wordy(v) && !isCode(v, false)
	}
	set := n.upper && !as.compared && (as.quote != 0 || as.tight)
	switch {
	case as.quote != 0 && strings.ContainsAny(v, " \t"):
		return len(v) >= 8 && v == strings.TrimSpace(v) && (n.kind == password || n.kind == phrase || set && n.kind == secret)
	case n.kind != token && (set || as.quote != 0 && !as.compared):
		return len(v) >= 4 && (!n.bare || !as.colon || as.quote != 0 || telling(v))
	case n.kind == password || n.kind == phrase:
		return telling(v) || as.tight && as.ownLine && len(v) >= 6 && !isCode(v, false)
	case set:
		return len(v) >= 6 && isMade(v) && (as.quote == 0 && !n.bare || !wordy(v) || len(parts(v)) > 2)
	}
	return len(v) >= 6 && !wordy(v) && telling(v) && (n.kind == secret || isMade(v))
}

// isMade reports whether a value may be random. Some generators, such as Django's, use all
// signs.
func isMade(v string) bool { return isToken(v) || len(v) >= tokenLen && mixes(v, 40) }

// value is a name's value in the text.
type value struct {
	from, to int
	quote    byte // the quote around it, or 0
	tight    bool // in the form of a setting: NAME=value, or a line of its own
	ownLine  bool // its line holds only the name and the value
	colon    bool // NAME: value
	compared bool // NAME == value
	said     bool // "the name is value"
	words    bool // the words of a wallet's phrase
}

// valueOf reads the value of a name: in a shell, a file of settings, YAML, JSON (also
// within a string), XML, a table of Markdown, a command's option, an address, code or a
// sentence.
func (s *scan) valueOf(n *named) (v value, ok bool) {
	at, closed := s.quoteEnd(n.to)
	if at < len(s.text) && s.text[at] == ']' {
		at++
	}
	at = s.bold(at)
	sign := s.blanks(at)
	if sign >= len(s.text) {
		return v, false
	}
	rest := s.lower[sign:]
	before := s.lower[max(0, n.from-maxSpaces):n.from]
	switch {
	case strings.HasPrefix(rest, ":-") && strings.HasSuffix(before, "${"):
		return s.until(sign+2, '}'), true
	case strings.HasPrefix(rest, "| ") && sign > at && strings.Contains(before, "| "): // a table's cells
		return s.given(n, s.blanks(sign+1), false), true
	case rest[0] == '>' && (closed || strings.HasSuffix(before, "<")):
		v = s.until(sign+1, '<')
		return v, strings.HasPrefix(s.text[v.to:], "</")
	case rest[0] == ',' && closed:
		if next := s.blanks(sign + 1); strings.HasPrefix(s.lower[next:], `"value"`) || strings.HasPrefix(s.lower[next:], `\"value\"`) {
			next, _ = s.quoteEnd(next + strings.IndexByte(s.lower[next:], 'e') + 1)
			if next = s.blanks(next); next < len(s.text) && s.text[next] == ':' {
				return s.given(n, s.blanks(next+1), true), true
			}
		} else if n.upper && strings.HasSuffix(strings.TrimRight(before, "\"'"), "(") { // setenv
			v = s.given(n, next, false)
			return v, v.quote != 0
		}
		return v, false
	case (rest[0] == '\n' || rest[0] == '\r') && strings.HasSuffix(strings.TrimRight(before, " \"'"), "name:"):
		next := strings.TrimLeft(rest, " \t\r\n")
		if !strings.HasPrefix(next, "value:") {
			return v, false
		}
		return s.given(n, s.blanks(len(s.text)-len(next)+len("value:")), true), true
	case closed && strings.HasPrefix(rest, "value="):
		return s.given(n, sign+len("value="), true), true
	}
	end, colon, compared := assigns(rest)
	end += sign
	if at := s.nextLine(end); n.kind == password && !closed && at > 0 {
		v = s.given(n, at, false)
		v.said = true
		return v, s.endsLine(v.to)
	}
	if end == sign {
		return s.behindBlank(n, before, at, sign)
	}
	next := s.blanks(s.bold(end))
	if colon {
		next = s.behindType(next)
	}
	if v, ok := s.wallet(n, next); ok {
		return v, true
	}
	if !closed && s.closes(n, next) {
		return v, false
	}
	v = s.given(n, next, !colon && sign == at && next == end || colon && n.first && !n.bare)
	v.colon, v.compared = colon, compared
	v.ownLine = n.from == 0 || s.text[n.from-1] == '\n'
	v.ownLine = v.ownLine && (v.to == len(s.text) || s.text[v.to] == '\n' || s.text[v.to] == '\r')
	if colon && v.quote == 0 && !s.endsLine(v.to) {
		v.tight = false
	}
	return v, true
}

// assigns reads the sign of assignment at the beginning of a text, and returns its length.
func assigns(rest string) (length int, colon, compared bool) {
	for _, op := range []string{"===", "==", "=>", "=", ":=", ":", "?=", "+="} {
		if strings.HasPrefix(rest, op) {
			return len(op), op == ":", op[0] == '=' && len(op) > 1 && op[1] == '='
		}
	}
	return 0, false, false
}

// nextLine returns the place of the text on the next line that is not empty, if a line ends at a
// place; else 0.
func (s *scan) nextLine(at int) int {
	rest := strings.TrimLeft(s.text[at:min(at+maxSpaces, len(s.text))], " \t*")
	if rest != "" && (rest[0] == '|' || rest[0] == '>') { // a text in YAML
		rest = strings.TrimLeft(rest[1:], "+-0123456789 \t")
	}
	if next := strings.TrimLeft(rest, "\r\n \t"); rest != "" && (rest[0] == '\n' || rest[0] == '\r') && next != "" {
		return at + strings.Index(s.text[at:], next)
	}
	return 0
}

// wallet reads the words of a wallet's phrase at a place, or of a person's passphrase.
func (s *scan) wallet(n *named, at int) (v value, ok bool) {
	end := at
	switch n.kind {
	case phrase:
		end = s.phraseEnd(at)
	case password:
		end = s.wordsEnd(at)
	case secret, token, pin, otpSeed:
	}
	return value{from: at, to: end, words: true}, end > at
}

// wordsEnd returns the end of the passphrase at a place: 4 to 10 words of three to twelve letters up
// to the end of the sentence, none of which describes a password. Else it returns the place itself.
func (s *scan) wordsEnd(at int) int {
	const fewest, most, shortest, longest = 4, 10, 3, 12
	end := at
	for words := 1; words <= most; words++ {
		begin := end
		for end < len(s.text) && (isLetter(s.text[end]) || s.text[end] >= utf8.RuneSelf) {
			end++
		}
		if end-begin < shortest || end-begin > longest || describing[s.lower[begin:end]] {
			return at
		}
		if end == len(s.text) || strings.IndexByte(".,!\r\n\"", s.text[end]) >= 0 {
			if words < fewest {
				return at
			}
			return end
		}
		if s.text[end] != ' ' {
			return at
		}
		end++
	}
	return at
}

// phraseEnd returns the end of the wallet's phrase at a place: 12, 15, 18, 21 or 24 words
// of three to eight lower-case letters. It returns the place itself if there are fewer:
// sentences have shorter and longer words.
func (s *scan) phraseEnd(at int) int {
	const fewest, most, step, shortest, longest = 12, 24, 3, 3, 8
	end, words := at, 0
	for words < most {
		for n := 0; n < 3 && at < len(s.text) && (isSpace(s.text[at]) || strings.IndexByte(`"',`, s.text[at]) >= 0); n++ {
			at++
		}
		begin := at
		for at < len(s.text) && at-begin <= longest && isLower(s.text[at]) {
			at++
		}
		if at-begin < shortest || at-begin > longest || at < len(s.text) && isName(s.text[at]) {
			break
		}
		if words++; words >= fewest && words%step == 0 {
			end = at
		}
	}
	return end
}

// behindBlank reads a value that no sign of assignment separates from its name.
func (s *scan) behindBlank(n *named, before string, at, next int) (v value, ok bool) {
	if copula := s.copulaAt(at); copula > at { // a language without blanks
		v = s.given(n, s.blanks(copula), false)
		v.said = true
		return v, v.to-v.from >= leastSaid
	}
	if next == at {
		return v, false
	}
	sets, tight := setBy(before, n)
	switch {
	case strings.HasSuffix(before, "-"): // an option of a command
		v = s.given(n, next, false)
	case sets:
		if strings.HasPrefix(s.text[next:], "-") { // gh secret set NAME --body value
			next = s.blanks(s.tokenRest(next))
		}
		v = s.given(n, next, tight)
	default:
		at, least := s.saidAt(next)
		if v, ok := s.wallet(n, at); ok {
			return v, true
		}
		if n.kind == pin {
			least = min(least, 4)
		}
		if strings.ContainsAny(s.text[at:min(at+least, len(s.text))], " \n") {
			return v, false
		}
		v = s.given(n, at, false)
		v.said = true
		return v, v.to-v.from >= least
	}
	return v, true
}

// setBy reports whether the command before a name sets it to the text that follows, and
// whether that is certain: "set" is also a common word, and counts only with an option, as
// in fish.
func setBy(before string, n *named) (sets, tight bool) {
	options := false
	before = strings.TrimRight(before, `"'`)
	rest := strings.TrimRight(before, " \t")
	if len(rest) == len(before) {
		return false, false
	}
	word := lastWord(rest)
	for isOption(word) {
		options = true
		rest = strings.TrimRight(strings.TrimSuffix(rest, word), " \t")
		word = lastWord(rest)
	}
	switch strings.TrimLeft(word, "\"'`($>") {
	case "setx", "setenv":
		return true, n.upper
	case "env", "arg":
		return true, n.upper && n.first
	case "set":
		return true, n.upper && options
	case "config":
		return true, false
	}
	return false, false
}

func lastWord(s string) string {
	at := len(s)
	for at > 0 && !isSpace(s[at-1]) {
		at--
	}
	return s[at:]
}

func isOption(word string) bool {
	name := strings.TrimLeft(word, "-")
	return len(name) < len(word) && strings.IndexFunc(name, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) < 0
}

// leastSaid is the least length of a value in a sentence.
const leastSaid = 6

// copulas are the words between a name and its value in a sentence.
var copulas = []string{"is now ", "is: ", "is ", "ist jetzt ", "ist: ", "ist ", "lautet: ", "lautet ", "est: ", "est ", "es: ", "es ", "\u00e9 ", "\u00e8 ", "to ", "jest ", "to: ", "\u00e4r ", "теперь ", "это ", "— ", "- "}

// copulaAt returns the place after a copula of a language without blanks; else the place
// itself.
func (s *scan) copulaAt(at int) int {
	for _, c := range []string{"\u662f", "\u4e3a", "\uff1a", "\u306f", "는", "은", "："} {
		if strings.HasPrefix(s.text[at:], c) {
			return at + len(c)
		}
	}
	return at
}

// saidAt returns the start of the value in "the password of the database is value", and
// its least length. A value directly after its name must be longer.
func (s *scan) saidAt(next int) (at, least int) {
	for at, end := next, min(len(s.text), next+maxSpaces); at < end; {
		for _, c := range copulas {
			end := at + len(c) - 1
			if !strings.HasPrefix(s.lower[at:], c[:len(c)-1]) || end == len(s.text) || !isSpace(s.text[end]) {
				continue
			}
			if below := s.nextLine(end); below > 0 {
				return below, leastSaid
			}
			return s.blanks(end), leastSaid
		}
		from := at
		for at < end && (isName(s.text[at]) || s.text[at] == '\'' || s.text[at] >= utf8.RuneSelf) {
			at++
		}
		if at = s.blanks(at); at == from {
			break
		}
	}
	return next, tokenLen
}

// closes reports whether a quote after a name closes one from before it, as in
// "password: ".
func (s *scan) closes(n *named, at int) bool {
	if at >= len(s.text) || strings.IndexByte("\"'`", s.text[at]) < 0 {
		return false
	}
	open := false
	for i := n.from - 1; i >= 0 && n.from-i < maxLine && s.text[i] != '\n'; i-- {
		apostrophe := i > 0 && isLetter(s.text[i-1]) && isLetter(s.text[i+1])
		if s.text[i] == s.text[at] && !apostrophe {
			open = !open
		}
	}
	return open
}

// behindType returns the place of the value in name: Type = "value"; else the place
// itself.
func (s *scan) behindType(at int) int {
	end := at
	for end < len(s.text) && end-at < maxName && (isName(s.text[end]) || strings.IndexByte(".<>[]|?&", s.text[end]) >= 0) {
		end++
	}
	if end == at {
		return at
	}
	if end = s.blanks(end); end+1 < len(s.text) && s.text[end] == '=' {
		if next := s.blanks(end + 1); next < len(s.text) && strings.IndexByte("\"'`", s.text[next]) >= 0 {
			return next
		}
	}
	return at
}

// given reads the value at a place.
func (s *scan) given(n *named, at int, tight bool) (v value) {
	if at+1 < len(s.text) && strings.IndexByte("frbuFRBULN@$", s.text[at]) >= 0 && strings.IndexByte("\"'`", s.text[at+1]) >= 0 {
		at++ // the prefix of a string literal
	}
	v = value{from: at, to: at, tight: tight}
	if open, ok := s.quoteEnd(at); ok {
		quote := s.text[at:open]
		if q := s.text[open-1:]; len(quote) == 1 && len(q) > 3 && q[1] == q[0] && q[2] == q[0] {
			quote, open = q[:3], open+2
		}
		v.quote, v.from = quote[len(quote)-1], open
		v.to = s.quotedTo(open, quote)
		return v
	}
	end := min(len(s.text), at+maxValue)
	for v.to < end && !s.endsBare(v.to, tight && n.first) {
		v.to++
	}
	if v.to < end || end == len(s.text) {
		s.trimBare(n, &v)
	}
	return v
}

// quoteEnd returns the place after the quote at a place, and whether there is one. The
// quote may be escaped.
func (s *scan) quoteEnd(at int) (int, bool) {
	end := at
	for end < len(s.text) && s.text[end] == '\\' {
		end++
	}
	if end < len(s.text) && strings.IndexByte("\"'`", s.text[end]) >= 0 {
		return end + 1, true
	}
	return at, false
}

// quotedTo returns the end of a quoted text: the same quote, or the end of the line.
func (s *scan) quotedTo(from int, quote string) int {
	text := s.text[:min(len(s.text), from+maxValue)]
	for i := from; i < len(text); i++ {
		switch {
		case text[i] == '\n':
			return i
		case strings.HasPrefix(text[i:], quote):
			return i
		case text[i] == '\\' && len(quote) == 1:
			i++
		}
	}
	return len(text)
}

// endsBare reports whether a value without quotes ends at a place. In a setting on a line
// of its own, quotes within the value are part of it.
func (s *scan) endsBare(at int, ownLine bool) bool {
	switch c := s.text[at]; c {
	case ' ', '\t', '\n', '\r':
		return true
	case '"', '\'', '`':
		return !ownLine || at+1 == len(s.text) || isSpace(s.text[at+1]) || s.text[at+1] == ','
	case '\\':
		return at+1 < len(s.text) && strings.IndexByte(`nrt"'\`, s.text[at+1]) >= 0
	case '<':
		return !ownLine && at+1 < len(s.text) && (s.text[at+1] == '/' || isLetter(s.text[at+1]))
	}
	return false
}

// trimBare trims a value without quotes: it cuts off the next pair of a list, the end of
// the sentence, and a closing bracket.
func (s *scan) trimBare(n *named, v *value) {
	for i := v.from; i < v.to; i++ {
		c := s.text[i]
		if strings.IndexByte(",;&|", c) >= 0 && s.pairAt(i+1) {
			v.to = i
			break
		}
	}
	for v.to > v.from {
		c := s.text[v.to-1]
		open := strings.IndexByte(")]}", c)
		switch {
		case c == ',' || c == ';':
		case c == '.' && (!v.tight || !n.first):
		case open >= 0 && strings.IndexByte(s.text[v.from:v.to], "([{"[open]) < 0:
		default:
			return
		}
		v.to--
	}
}

// pairAt reports whether another pair of a name and a value begins at a place.
func (s *scan) pairAt(at int) bool {
	end := at
	for end < len(s.text) && end-at < maxName && (isName(s.text[end]) || s.text[end] == '.') {
		end++
	}
	return end > at && end < len(s.text) && (s.text[end] == '=' || s.text[end] == ':')
}

// until returns the value from a place up to a character, or to the end of the line.
func (s *scan) until(at int, stop byte) value {
	v := value{from: at, to: at, tight: true}
	for v.to < len(s.text) && v.to-at < maxValue && s.text[v.to] != stop && s.text[v.to] != '\n' {
		v.to++
	}
	return v
}

// blanks returns the place after the blanks at a place.
func (s *scan) blanks(at int) int {
	for n := 0; n < maxSpaces && at < len(s.text) && (s.text[at] == ' ' || s.text[at] == '\t'); n++ {
		at++
	}
	return at
}

// bold returns the place after the ** that ends bold text in Markdown; else the place
// itself.
func (s *scan) bold(at int) int {
	if strings.HasPrefix(s.text[at:], "**") {
		at += 2
	}
	return at
}

// endsLine reports whether nothing but a comment or a closing brace follows on the line.
func (s *scan) endsLine(at int) bool {
	if at < len(s.text) && strings.IndexByte("\"',", s.text[at]) >= 0 {
		at++
	}
	at = s.blanks(at)
	return at == len(s.text) || strings.IndexByte("\n\r#}", s.text[at]) >= 0 || s.text[at] == '\\'
}

// begins reports whether a word can begin at a place.
func (s *scan) begins(at int) bool {
	switch {
	case at == 0:
		return true
	case at > 1 && s.text[at-2] == '\\' && strings.IndexByte("nrt", s.text[at-1]) >= 0:
		return true
	}
	return !isName(s.text[at-1]) && s.text[at-1] != '.'
}

// rest returns the real end of a token of which only maxValue bytes were read.
func (s *scan) rest(from, end int) int {
	for end-from >= maxValue && end < len(s.text) && isGraph(s.text[end]) {
		end++
	}
	return end
}

// tokenRest returns the end of the token at a place.
func (s *scan) tokenRest(at int) int {
	for n := 0; n < maxValue && at < len(s.text) && isGraph(s.text[at]); n++ {
		at++
	}
	return at
}
