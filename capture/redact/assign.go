package redact

import "strings"

// value is a name's value in the text.
type value struct {
	from, to int
	quote    byte // the quote around it; 0: none
	tight    bool // as settings have it: NAME=value, or a line of its own
	ownLine  bool // with its name it is all of a line
	colon    bool // NAME: value
	compared bool // NAME == value
	said     bool // "the name is value"
}

// valueOf reads the value of a name: in a shell, a file of settings, YAML, JSON (also
// within a string), XML, a command's option, an address, or code.
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
	end, colon, compared := sign, false, false
	for _, op := range []string{"===", "==", "=>", "=", ":=", ":", "?=", "+="} {
		if strings.HasPrefix(rest, op) {
			end, colon, compared = sign+len(op), op == ":", op[0] == '=' && len(op) > 1 && op[1] == '='
			break
		}
	}
	if end == sign {
		return s.behindBlank(n, before, at, sign)
	}
	next := s.blanks(s.bold(end))
	if colon {
		next = s.behindType(next)
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

// behindBlank reads a value that only a blank separates from its name.
func (s *scan) behindBlank(n *named, before string, at, next int) (v value, ok bool) {
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
		if strings.ContainsAny(s.text[at:min(at+least, len(s.text))], " \n") {
			return v, false
		}
		v = s.given(n, at, false)
		v.said = true
		return v, v.to-v.from >= least && mixes(start(s.text[v.from:v.to]), 20)
	}
	return v, true
}

// setBy reports whether the command before a name sets it to the text that follows, and
// whether it can mean nothing else: "set" is also a word, and fish's has options.
func setBy(before string, n *named) (sets, tight bool) {
	options := false
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

// saidAt returns where the value begins in "the password of the database is value", and
// its least length, which is larger when it follows the name at once.
func (s *scan) saidAt(next int) (at, least int) {
	for at, end := next, min(len(s.text), next+maxSpaces); at < end; {
		if strings.HasPrefix(s.lower[at:], "is ") {
			return s.blanks(at + len("is ")), 6
		}
		from := at
		for at < end && (isName(s.text[at]) || s.text[at] == '\'') {
			at++
		}
		if at = s.blanks(at); at == from {
			break
		}
	}
	return next, tokenLen
}

// closes reports whether a quote behind a name ends what began before it, as
// in "password: ".
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

// behindType returns the place of the value in name: Type = "value", or else at itself.
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

// given reads a value that begins at a place.
func (s *scan) given(n *named, at int, tight bool) (v value) {
	if at+1 < len(s.text) && strings.IndexByte("frbuFRBULN@$", s.text[at]) >= 0 && strings.IndexByte("\"'`", s.text[at+1]) >= 0 {
		at++ // a string of some kind
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

// quoteEnd returns the place behind the quote at a place, which may be escaped.
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

// quotedTo returns where a quoted text ends: at the same quote, or at the end of the line.
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
// of its own, quotes within are part of it.
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

// trimBare cuts off a value without quotes what does not belong to it: the next pair of a
// list, the end of a sentence, or a closing bracket.
func (s *scan) trimBare(n *named, v *value) {
	list := byte(0)
	if n.from > 0 && strings.IndexByte("?&;", s.text[n.from-1]) >= 0 {
		list = s.text[n.from-1]
	}
	for i := v.from; i < v.to; i++ {
		c := s.text[i]
		if c == list && c != '?' || list == '?' && c == '&' || strings.IndexByte(",;&|", c) >= 0 && s.pairAt(i+1) {
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

// pairAt reports whether another name with a value begins at a place.
func (s *scan) pairAt(at int) bool {
	end := at
	for end < len(s.text) && end-at < maxName && (isName(s.text[end]) || s.text[end] == '.') {
		end++
	}
	return end > at && end < len(s.text) && (s.text[end] == '=' || s.text[end] == ':')
}

// until returns a value up to a character, or the end of the line.
func (s *scan) until(at int, stop byte) value {
	v := value{from: at, to: at, tight: true}
	for v.to < len(s.text) && v.to-at < maxValue && s.text[v.to] != stop && s.text[v.to] != '\n' {
		v.to++
	}
	return v
}

// blanks returns the place behind the blanks at a place.
func (s *scan) blanks(at int) int {
	for n := 0; n < maxSpaces && at < len(s.text) && (s.text[at] == ' ' || s.text[at] == '\t'); n++ {
		at++
	}
	return at
}

// bold returns the place behind the signs with which Markdown ends bold text.
func (s *scan) bold(at int) int {
	if strings.HasPrefix(s.text[at:], "**") {
		at += 2
	}
	return at
}

// endsLine reports whether only a comment follows on a line.
func (s *scan) endsLine(at int) bool {
	if at < len(s.text) && strings.IndexByte("\"',", s.text[at]) >= 0 {
		at++
	}
	at = s.blanks(at)
	return at == len(s.text) || strings.IndexByte("\n\r#}", s.text[at]) >= 0 || s.text[at] == '\\'
}
