package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// names are the endings of the names of secrets. One behind "=" is a word of its own, and
// not the end of another one.
var names = []struct{ kind, list string }{
	{password, "passphrase,password,passwort,passwd,=pass,=pwd,=pw,kennwort,wachtwoord,=senha,contrasena,contraseña,=mot de passe,ароль,hasło,=haslo,=clave," +
		"losenord,lösenord,=parola,şifre,パスワード,密碼,密码,비밀번호,암호,รหัสผ่าน,पासवर्ड,كلمة المرور,كلمة السر"},
	{secret, "secret_key,secret"},
	{token, "token,api_key,api-key,api key,fi key"},
}

// The kinds of secrets that names announce.
const (
	password = "password" // made up by a person, or random
	secret   = "secret"   // likewise, but not of several words
	token    = "token"    // random
)

const (
	maxName   = 80      // bytes of a name that are read
	maxBefore = 40      // bytes that are read before a name
	maxValue  = 256     // bytes of a value that decide; all of it is redacted
	maxLine   = 1 << 10 // bytes of a line that are read before a name
)

// name is the name of a secret in the text.
type name struct {
	kind     string
	from, to int
	before   string // the text before it, in lower case
	upper    bool   // it has no lower-case letters, like an environment variable
	bare     bool   // it is only the ending
	first    bool   // only blanks, a prompt or a word such as export precede it on its line
}

// named finds the values of names for secrets: in shells, files of many kinds, code,
// addresses and sentences.
func (s *scan) named(list []found) []found {
	for _, of := range names {
		for word := range strings.SplitSeq(of.list, ",") {
			word, apart := strings.CutPrefix(word, "=")
			done := 0
			for at := range s.places(word) {
				n, ok := s.nameAt(at, word, apart)
				if n.kind = of.kind; !ok || at < done {
					continue
				}
				if v, ok := s.valueOf(&n); ok && v.to > v.from && n.holds(&v, s.text[v.from:v.to]) {
					for v.to-v.from >= maxValue && v.to < len(s.text) && isGraph(s.text[v.to]) {
						v.to++
					}
					list = append(list, found{v.from, v.to, of.kind})
					done = v.to
				}
			}
		}
	}
	return list
}

var (
	nameEnd   = regexp.MustCompile(`^(?:_(?:value|prod|production|dev|test|staging|live|old|new|base))?(?:_?\d{1,3})?`)
	lineStart = regexp.MustCompile(`(?:^|\n)[ \t\r+>#$-]*(?:(?:export|set|env|setx|declare|declare -x|env:|arg)[ \t\r+>#$-]*)?$`)
)

// nameAt reads the whole name around an ending at a place.
func (s *scan) nameAt(at int, word string, apart bool) (n name, ok bool) {
	n.to = at + len(word)
	n.to += len(nameEnd.FindString(s.lower[n.to:min(len(s.text), n.to+16)]))
	if n.to < len(s.text) && (isName(s.text[n.to]) || s.text[n.to] == '.' && n.to+1 < len(s.text) && isName(s.text[n.to+1])) {
		return n, false
	}
	for n.from = at; n.from > 0 && at-n.from < maxName && (isName(s.text[n.from-1]) || s.text[n.from-1] == '.'); {
		n.from--
	}
	n.from += len(s.text[n.from:at]) - len(strings.TrimLeft(s.text[n.from:at], "-."))
	n.bare = n.from == at
	n.before = s.lower[max(0, n.from-maxBefore):n.from]
	hump := at > n.from && isUpper(s.text[at]) && isLower(s.text[at-1])
	if strings.HasSuffix(n.before, "[redacted:") || apart && at > n.from && isAlnum(s.text[at-1]) && !hump {
		return n, false
	}
	last := s.text[n.from:n.to]
	last = last[strings.LastIndexByte(last, '.')+1:]
	n.upper = strings.IndexFunc(last, unicode.IsLower) < 0 && !strings.Contains(last, " ")
	n.first = (n.from <= maxBefore || strings.Contains(n.before, "\n")) && lineStart.MatchString(n.before)
	return n, last != "PWD" && last != "OLDPWD" && (last != "PASS" || !strings.HasPrefix(s.text[n.to:], ":")) // directories, and results of tests
}

// value is a name's value in the text.
type value struct {
	from, to int
	quoted   bool
	tight    bool // in the form of a setting: NAME=value, or a line of its own
	said     bool // "the name is value"
	words    bool // a passphrase
}

// gap matches the text between a name and its value. Its groups are: 1 a closing quote; 2
// "value", as in JSON, XML and YAML; 3 a default in a shell, the end of a tag, the border of
// a cell, or a comma; 4 the end of the line, and perhaps a sign; 5 a sign of assignment; 6 a
// copula, after up to four words; 7 blanks.
var gap = regexp.MustCompile("^(\\\\*[\"'`])?\\]?(?:\\*\\*)?(?:[ \\t]{0,40}(?:" +
	"(,[ \\t]*\\\\*[\"']value\\\\*[\"'][ \\t]*:|value=|\\r?\\n[ \\t-]*value:)|(:-|>|\\|[ \\t]+|,)|" +
	"((?:={1,3}>?|:=|:|\\?=|\\+=)?[ \\t*]{0,40}(?:[|>][+0-9-]*)?[ \\t]*[\\r\\n]+)|" +
	"(={2,3}|=>|=|:=|:|\\?=|\\+=)(?:\\*\\*)?|(是|为|：|は|는|은|" +
	"(?:[\\w'\\x{80}-\\x{10ffff}-]+[ \\t]+){0,4}?(?:is now|is|ist jetzt|ist|lautet|est|es|é|è|to|jest|är|теперь|это|—|-):?(?:[ \\t]|[ \\t]*[\\r\\n]+)))|([ \\t]+(?:--body[ \\t]+)?))\\s{0,40}")

var (
	typed      = regexp.MustCompile("^[\\w.<>\\[\\]|?&]{1,80}[ \\t]*=[ \\t]*[\"'`]")
	nameKey    = regexp.MustCompile(`name:[ \t]*["']?$`)
	phrase     = regexp.MustCompile(`^(?:\pL{3,12} ){3,9}\pL{3,12}(?:[.,!\r\n"]|$)`)
	lineEnd    = regexp.MustCompile(`^["',]?[ \t]{0,40}(?:[\n\r#}\\]|$)`)
	apostrophe = regexp.MustCompile(`\pL'\pL`)
)

// valueOf reads the value of a name: in a shell, a file of settings, YAML, JSON (also
// within a string), XML, a table of Markdown, a command's option, an address, code or a
// sentence.
func (s *scan) valueOf(n *name) (v value, ok bool) {
	m := gap.FindStringSubmatch(s.text[n.to:min(len(s.text), n.to+3*maxName)])
	if m == nil {
		return v, false
	}
	at, closed, colon := n.to+len(m[0]), m[1] != "", m[5] == ":"
	if t := typed.FindString(s.text[at:min(len(s.text), at+2*maxName)]); colon && t != "" {
		at += len(t) - 1 // name: Type = "value"
	}
	v = s.given(at, n.first && m[5] != "" && (!colon || !n.bare))
	after := s.text[v.to:]
	switch {
	case m[2] != "":
		v.tight = n.upper
		return v, closed || nameKey.MatchString(n.before)
	case m[3] == ":-":
		v.tight = n.upper
		return v, strings.HasSuffix(n.before, "${")
	case m[3] == ">":
		v.tight = n.upper
		return v, (closed || strings.HasSuffix(n.before, "<")) && strings.HasPrefix(after, "</")
	case m[3] == ",": // setenv
		return v, closed && v.quoted && n.upper && strings.HasSuffix(strings.TrimRight(n.before, "\"'"), "(")
	case m[3] != "":
		return v, strings.Contains(n.before, "| ")
	case m[4] != "":
		v.said = true
		return v, n.kind == password && !closed && lineEnd.MatchString(after)
	case n.kind == password && !v.quoted:
		v.words = s.phraseAt(&v)
	}
	if m[5] == "" {
		v.said = !strings.HasSuffix(n.before, "-") // else an option of a command
		return v, m[6] != "" || !v.said || v.words || isMixed(s.text[v.from:v.to]) && (n.kind == password || v.to-v.from >= leastRandom)
	}
	whole := (n.from == 0 || s.text[n.from-1] == '\n') && (after == "" || after[0] == '\n' || after[0] == '\r')
	setting := !colon && m[0] == m[5] || colon && n.first && !n.bare && lineEnd.MatchString(after)
	v.tight = setting && (n.upper || whole)
	return v, closed || !v.quoted || !s.closes(n, at)
}

// phraseAt extends a value to a passphrase of words that describe nothing.
func (s *scan) phraseAt(v *value) bool {
	said := strings.TrimRight(phrase.FindString(s.text[v.from:min(len(s.text), v.from+3*maxName)]), ".,!\r\n\"")
	for w := range strings.FieldsSeq(strings.ToLower(said)) {
		if describing[w] {
			return false
		}
	}
	v.to = max(v.to, v.from+len(said))
	return said != ""
}

// closes reports whether a quote after a name closes one from before it, as in
// "password: ".
func (s *scan) closes(n *name, at int) bool {
	line := s.text[max(0, n.from-maxLine):n.from]
	line = apostrophe.ReplaceAllString(line[strings.LastIndexByte(line, '\n')+1:], "")
	return strings.Count(line, s.text[at:at+1])%2 == 1
}

var (
	quoted = regexp.MustCompile("^[frbuFRBULN@$]?(?:(?:\"\"\"|\")((?:[^\"\\\\\n]|\\\\.)+)|(?:'{3}|')((?:[^'\\\\\n]|\\\\.)+)|`([^`\n]+)|\\\\+[\"']([^\"'\\\\\n]+))")
	bare   = regexp.MustCompile("^(?:[^\\s\"'`\\\\<]|\\\\[^nrt\"'`\\\\]|<[^/A-Za-z])+")
	line   = regexp.MustCompile("^(?:[^\\s\\\\]|\\\\[^nrt\"'`\\\\])+")
	pair   = regexp.MustCompile(`[,;&|][\w.-]+[=:]`)
)

// given reads the value at a place. In a setting on a line of its own, quotes within the
// value are part of it.
func (s *scan) given(at int, setting bool) (v value) {
	text := s.text[at:min(len(s.text), at+maxValue)]
	if m := quoted.FindStringSubmatchIndex(text); m != nil {
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				return value{from: at + m[i], to: at + m[i+1], quoted: true}
			}
		}
	}
	if setting {
		text = strings.TrimRight(line.FindString(text), "\"'`,")
	} else {
		text = bare.FindString(text)
	}
	if i := pair.FindStringIndex(text); i != nil {
		text = text[:i[0]] // the next pair of a list follows
	}
	for was := ""; was != text && text != ""; {
		was = text
		text = strings.TrimRight(text, ",;")
		if !setting {
			text = strings.TrimRight(text, ".")
		}
		if i := len(text) - 1; i >= 0 {
			if open := strings.IndexByte(")]}", text[i]); open >= 0 && strings.IndexByte(text, "([{"[open]) < 0 {
				text = text[:i]
			}
		}
	}
	return value{from: at, to: at + len(text)}
}

// holds reports whether a value is a secret of the kind that its name announces.
func (n *name) holds(v *value, text string) bool {
	if v.words {
		return true
	}
	if isHarmless(text) || !v.quoted && isCode(text) {
		return false
	}
	switch {
	case strings.ContainsAny(text, " \t"):
		return v.quoted && !v.said && len(text) >= 8 && text == strings.TrimSpace(text) && (n.kind == password || n.upper && n.kind == secret)
	case v.said:
		return telling(text) && mixes(text, 20) && !wordy(text)
	case v.tight && (n.kind != token || n.upper), v.quoted && n.kind != token:
		return len(text) >= 4
	case n.kind == password:
		return telling(text)
	}
	return len(text) >= 6 && telling(text) && !wordy(text) && (n.kind == secret || isToken(text) || mixes(text, 40))
}
