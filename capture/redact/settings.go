package redact

import (
	"regexp"
	"strings"
	"unicode"
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

// names are the endings of the names of secrets. One behind "=" is a word of its own, and not the end
// of another one.
var names = []struct {
	kind secretKind
	list string
}{
	{password, "passphrase,password,passwort,passwd,=pass,=pwd,=pw,kennwort,wachtwoord,=senha,contrasena,contraseña,=mot de passe,ароль,hasło,=haslo,=clave," +
		"losenord,lösenord,=parola,şifre,パスワード,密碼,密码,비밀번호,암호,รหัสผ่าน,पासवर्ड,كلمة المرور,كلمة السر"},
	{pin, "=pin,暗証番号"},
	{phrase, "=mnemonic phrase,=mnemonic,=seed_phrase,=seedphrase,=seed phrase,=recovery phrase"},
	{otpSeed, "otp seed,fa seed"},
	{secret, "secret_key,secret"},
	{token, "token,api_key,api-key,api key,fi key"},
}

const (
	maxName   = 80      // bytes of a name that are read
	maxSpaces = 40      // before and after a sign of assignment
	maxValue  = 2 << 10 // bytes of a value that decide; all of it is redacted
	leastSaid = 6       // bytes of a value in a sentence
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
	for _, of := range names {
		done := 0
		for word := range strings.SplitSeq(of.list, ",") {
			word, apart := strings.CutPrefix(word, "=")
			for at := range s.places(word) {
				n, ok := s.nameAt(at, word, apart)
				if n.kind = of.kind; !ok || at < done {
					continue
				}
				if v, ok := s.valueOf(&n); ok && v.to > v.from && n.holds(s.text[v.from:v.to], &v) {
					list = append(list, found{v.from, s.rest(v.from, v.to), string(n.kind)})
					done = v.to
				}
			}
			done = 0
		}
	}
	return list
}

var (
	nameEnd   = regexp.MustCompile(`^(?:_(?:value|prod|production|dev|test|staging|live|old|new|base))?(?:_?\d{1,3})?`)
	lineStart = regexp.MustCompile(`(?:^|\n)[ \t\r+>#$-]*(?:(?:export|set|env|setx|declare|declare -x|env:|arg)[ \t\r+>#$-]*)?$`)
)

// nameAt reads the whole name around an ending at a place.
func (s *scan) nameAt(at int, word string, apart bool) (n named, ok bool) {
	n.word, n.to = word, at+len(word)
	n.to += len(nameEnd.FindString(s.lower[n.to:min(len(s.text), n.to+16)]))
	if n.to < len(s.text) && (isName(s.text[n.to]) || s.text[n.to] == '.' && n.to+1 < len(s.text) && isName(s.text[n.to+1])) {
		return n, false
	}
	before := s.lower[max(0, at-maxName):at]
	before = before[strings.LastIndexFunc(before, func(r rune) bool { return !strings.ContainsRune(nameChars+"-.", r) })+1:]
	before = strings.TrimLeft(strings.ToValidUTF8(before, ""), "-.")
	n.from = at - len(before)
	if strings.HasSuffix(s.text[:n.from], "[redacted:") || apart && before != "" && isAlnum(s.text[at-1]) && (!isUpper(s.text[at]) || !isLower(s.text[at-1])) {
		return n, false
	}
	name := s.text[n.from:n.to]
	name = name[strings.LastIndexByte(name, '.')+1:]
	n.upper, n.bare = strings.IndexFunc(name, unicode.IsLower) < 0 && !strings.Contains(name, " "), before == ""
	line := s.lower[max(0, n.from-maxSpaces):n.from]
	n.first = (n.from <= maxSpaces || strings.Contains(line, "\n")) && lineStart.MatchString(line)
	return n, word != "pwd" || !n.upper || !n.bare && before != "old" // else a directory
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

// gap matches the text between a name and its value. Its groups are: 1 the default of a variable in a shell; 2 a
// closing quote; 3 the end of a tag; 4 the border of a cell; 5 "value", as in JSON, XML and YAML; 6 a comma; 7
// the end of the line, and perhaps a sign; 8 a sign of assignment; 9 a copula of a language without blanks; 10 a
// copula, after up to four words; 11 blanks.
var gap = regexp.MustCompile("^(?:(:-)|(\\\\*[\"'`])?\\]?(?:\\*\\*)?(?:[ \\t]{0,40}(?:" +
	"(>)|(\\|[ \\t]+)|(,[ \\t]*\\\\*[\"']value\\\\*[\"'][ \\t]*:|value=|\\r?\\n[ \\t-]*value:)|(,)|" +
	"((?:={1,3}>?|:=|:|\\?=|\\+=)?[ \\t*]{0,40}(?:[|>][+0-9-]*)?[ \\t]*[\\r\\n]+)|" +
	"(={2,3}|=>|=|:=|:|\\?=|\\+=)(?:\\*\\*)?|(是|为|：|は|는|은)|" +
	"((?:[\\w'\\x{80}-\\x{10ffff}-]+[ \\t]+){0,4}?(?:is now|is|ist jetzt|ist|lautet|est|es|é|è|to|jest|är|теперь|это|—|-):?(?:[ \\t]|[ \\t]*[\\r\\n]+)))|([ \\t]+)))\\s{0,40}")

var (
	typed    = regexp.MustCompile("^[\\w.<>\\[\\]|?&]{1,80}[ \\t]*=[ \\t]*[\"'`]")
	commands = regexp.MustCompile("(?:^|[\\s\"'`($>])(setx|setenv|env|arg|set|config)((?:[ \\t]+-+[a-z-]+)*)[ \\t]+[\"']?$")
	body     = regexp.MustCompile(`^--?[\w-]+[ \t]+`)
	nameKey  = regexp.MustCompile(`name:[ \t]*["']?$`)
	sayWords = regexp.MustCompile(`^(?:\pL{3,12} ){3,9}\pL{3,12}(?:[.,!\r\n"]|$)`)
	wallets  = func() (all []*regexp.Regexp) {
		for _, n := range []string{"24", "21", "18", "15", "12"} {
			all = append(all, regexp.MustCompile(`^(?:[\s"',]{0,3}\b[a-z]{3,8}\b){`+n+`}`))
		}
		return all
	}()
)

// valueOf reads the value of a name: in a shell, a file of settings, YAML, JSON (also
// within a string), XML, a table of Markdown, a command's option, an address, code or a
// sentence.
func (s *scan) valueOf(n *named) (v value, ok bool) {
	m := gap.FindStringSubmatchIndex(s.text[n.to:min(len(s.text), n.to+3*maxName)])
	if m == nil {
		return v, false
	}
	has := func(group int) bool { return m[2*group] >= 0 }
	before := s.lower[max(0, n.from-maxSpaces):n.from]
	at, closed := n.to+m[1], has(2)
	quoted := at < len(s.text) && strings.IndexByte("\"'`\\", s.text[at]) >= 0
	switch {
	case has(1):
		return s.until(at, '}'), strings.HasSuffix(before, "${")
	case has(3):
		v = s.until(at, '<')
		return v, (closed || strings.HasSuffix(before, "<")) && strings.HasPrefix(s.text[v.to:], "</")
	case has(4):
		return s.given(n, at, false), strings.Contains(before, "| ")
	case has(5):
		return s.given(n, at, true), closed || nameKey.MatchString(before)
	case has(6): // setenv
		return s.given(n, at, false), closed && quoted && n.upper && strings.HasSuffix(strings.TrimRight(before, "\"'"), "(")
	case has(7):
		v = s.given(n, at, false)
		v.said = true
		return v, n.kind == password && !closed && s.endsLine(v.to)
	case has(9), has(10):
		return s.saidAt(n, at, leastSaid)
	case has(8):
		return s.assignedTo(n, at, s.text[n.to+m[16]:n.to+m[17]], m[1] == m[17]-m[16], closed, quoted)
	case strings.HasSuffix(before, "-"): // an option of a command
		return s.given(n, at, false), true
	}
	if c := commands.FindStringSubmatch(before); c != nil {
		at += len(body.FindString(s.text[at:min(len(s.text), at+maxName)]))                                      // gh secret set NAME --body value
		sure := map[string]bool{"setx": true, "setenv": true, "env": n.first, "arg": n.first, "set": c[2] != ""} // "set" is a common word
		return s.given(n, at, n.upper && sure[c[1]]), true
	}
	return s.saidAt(n, at, tokenLen)
}

// assignedTo reads the value at a place behind a sign of assignment.
func (s *scan) assignedTo(n *named, at int, sign string, near, closed, quoted bool) (v value, ok bool) {
	colon := sign == ":"
	if v, ok := s.words(n, at); ok {
		return v, true
	}
	if m := typed.FindStringIndex(s.text[at:min(len(s.text), at+2*maxName)]); colon && m != nil {
		at += m[1] - 1 // name: Type = "value"
	}
	if !closed && quoted && s.closes(n, at) {
		return v, false
	}
	v = s.given(n, at, !colon && near || colon && n.first && !n.bare)
	v.colon, v.compared = colon, len(sign) > 1 && sign[:2] == "=="
	v.ownLine = n.from == 0 || s.text[n.from-1] == '\n'
	v.ownLine = v.ownLine && (v.to == len(s.text) || s.text[v.to] == '\n' || s.text[v.to] == '\r')
	if colon && v.quote == 0 && !s.endsLine(v.to) {
		v.tight = false
	}
	return v, true
}

// words reads the words of a wallet's phrase at a place, or of a person's passphrase.
func (s *scan) words(n *named, at int) (v value, ok bool) {
	rest := s.text[at:min(len(s.text), at+3*maxName)]
	v = value{from: at, to: at, words: true}
	switch n.kind {
	case password:
		said := strings.TrimRight(sayWords.FindString(rest), ".,!\r\n\"")
		for w := range strings.FieldsSeq(strings.ToLower(said)) {
			if describing[w] {
				return v, false
			}
		}
		v.to += len(said)
	case phrase:
		for _, form := range wallets {
			if v.to = at + len(form.FindString(rest)); v.to > at {
				break
			}
		}
	case secret, token, pin, otpSeed:
	}
	return v, v.to > at
}

// saidAt reads the value at a place in a sentence, of at least some bytes.
func (s *scan) saidAt(n *named, at, least int) (v value, ok bool) {
	if v, ok := s.words(n, at); ok {
		return v, true
	}
	if n.kind == pin {
		least = min(least, 4)
	}
	v = s.given(n, at, false)
	v.said = true
	if n.kind == password && isMixed(s.text[v.from:v.to]) { // "my password hunter22x"
		least = leastSaid
	}
	return v, v.to-v.from >= least && !strings.ContainsAny(s.text[at:at+least], " \n")
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
	for end-from >= maxValue && end < len(s.text) && isGraph(s.text[end-1]) && isGraph(s.text[end]) {
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
