package redact

import (
	"slices"
	"strings"
)

const (
	leastValue   = 10 // characters of a value that is a secret whatever its name
	leastHash    = 20 // hexadecimal digits of such a value: fewer are an ID
	leastLetters = 15 // letters of a value without digits
	longestGap   = 14 // signs, quotation marks and blanks between a name and its value
)

// assigned finds random values of settings without a name for a secret, such as the name of
// a service.
func (s *scan) assigned(list []found) []found {
	for at := 0; at < len(s.text); at++ {
		if !isAssignable(s.text[at]) {
			continue
		}
		from := at
		for at < len(s.text) && isAssignable(s.text[at]) {
			at++
		}
		calls := at < len(s.text) && s.text[at] == '('
		value, end, ok := s.sides(from, at)
		if !ok || calls {
			continue
		}
		name, sign := s.nameBefore(end), s.text[end:value]
		said := strings.Contains(name, " ") && !strings.ContainsAny(sign, "=|,") && !confides(name) && !strings.HasSuffix(strings.ToLower(name), "key") // "the last one: …"
		if !said && isAssigned(name, start(s.text[value:at])) {
			list = append(list, found{value, s.rest(value, at), "secret"})
		}
	}
	return list
}

func isAssignable(c byte) bool { return isValue(c) || c == '~' || c == '%' }

// sides returns the start of the value in a run of characters, and the end of its name: the sign is
// within the run, or before it.
func (s *scan) sides(from, to int) (value, name int, ok bool) {
	for i := strings.LastIndexByte(s.text[from:to], '='); i > 0; i = strings.LastIndexByte(s.text[from:from+i], '=') {
		name := strings.TrimRight(s.text[from:from+i], "0123456789")
		if name = name[strings.LastIndexByte(name, '=')+1:]; to-from-i > leastValue && wordy(name) && !strings.ContainsAny(name, "0123456789") {
			return from + i + 1, from + i, true
		}
	}
	for name = from; from-name < longestGap && name > 0 && strings.IndexByte("=:>|?,`'\" \t\\", s.text[name-1]) >= 0; name-- {
	}
	sign := s.text[name:from]
	for from < to && s.text[from] == '-' {
		from++
	}
	given := strings.Count(sign, ",") == 1 && strings.ContainsAny(sign, "\"'`") // setenv("NAME", "value")
	signed := given || strings.ContainsAny(sign, "=:>") || strings.Contains(sign, "||")
	return from, name, name > 0 && (signed || name < from && confides(s.nameBefore(name))) && to-from >= leastValue
}

// nameBefore returns the name that ends at a place, of up to three words.
func (s *scan) nameBefore(end int) string {
	from := end
	for blanks := 0; from > 0 && end-from < maxName; from-- {
		if c := s.text[from-1]; c == ' ' && blanks < 2 && from < end {
			blanks++
		} else if !isName(c) && c != '.' && (c != ':' || from == end) {
			break
		}
	}
	return s.text[from:end]
}

// isAssigned reports whether a name has a random value. The value of an identifier
// is no secret.
func isAssigned(name, v string) bool {
	v = strings.TrimRight(v, ".=")
	words := slices.DeleteFunc(parts(name), func(w string) bool { return w == "key" })
	if len(words) == 0 || words[0] == "redacted" || strings.Trim(words[0], "0123456789") == "" || len(v) < leastValue {
		return false
	}
	for _, w := range words[max(0, len(words)-2):] {
		if !confides(name) && identifiers[w] || identifiers[strings.TrimSuffix(w, "s")] {
			return false
		}
	}
	if v[0] == '/' || v[0] == '+' || strings.HasPrefix(v, "v0.") || strings.HasPrefix(v, "v1.") || isPlaceholder(v) || describes(v) || elsewhere(v) || isCode(v, false) {
		return false
	}
	if identifies(v) {
		last := name[strings.LastIndexByte(name, ' ')+1:]
		return len(v) != 36 || confides(name) || last == strings.ToUpper(last)
	}
	if len(v) < leastHash && strings.Trim(strings.ToLower(v), "0123456789abcdef") == "" {
		return false
	}
	all := strings.FieldsFunc(v, func(r rune) bool { return !isAlnum(byte(r)) })
	if slices.ContainsFunc(all, func(w string) bool { return len(w) >= leastValue && isMixed(w) }) {
		return true
	}
	isWord := func(w string) bool { return len(w) > 3 && wordLike(w) && strings.Trim(w, "0123456789") != "" }
	return mixes(v, 30) && isMixed(v) && !slices.ContainsFunc(all, isWord)
}

// isMixed reports whether letters and digits are mixed at random.
func isMixed(v string) bool {
	digits, letters := 0, 0
	for i := range len(v) {
		if isDigit(v[i]) {
			digits++
		} else if isLetter(v[i]) {
			letters++
		}
	}
	joined := digits == 1 && len(v) >= 3*len(parts(v)) && len(parts(v)) > 2 // getUserById2
	return letters > 1 && (digits > 0 || letters >= leastLetters && mixes(v, 40)) && !joined && !wordy(v) && entropy(v) >= 2.8
}
