package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	leastValue   = 10 // characters of a value that is a secret whatever its name
	leastHash    = 20 // hexadecimal digits of such a value: fewer are an ID
	leastLetters = 15 // letters of a value without digits
	longestGap   = 14 // signs, quotation marks and blanks between a name and its value
	leastRandom  = 16 // characters of a token's random part
	maxPrefix    = 12 // characters of its prefix
	maxSure      = 6  // characters of a prefix that names of other things rarely have
)

var (
	runs   = regexp.MustCompile(`[\w.+/=~%-]{10,}`)
	tokens = regexp.MustCompile(`[\w-]+(?:\.[\w-]+)*`)
	inside = regexp.MustCompile(`^(?:.*=)?([^=]*[^=\d])\d*=([^=]{8,}={0,2})$`)
	ending = regexp.MustCompile(`(?:[\w.:-]+ ){0,2}[\w.:-]*[\w.-]$`)
)

// random finds random values by their form: a short prefix that names the service, a sign
// and random characters; or any name, a sign of assignment and a random value.
func (s *scan) random(list []found) []found {
	for _, run := range runs.FindAllStringIndex(s.text, -1) {
		for _, m := range tokens.FindAllStringIndex(s.text[run[0]:run[1]], -1) {
			from, to := run[0]+m[0], run[0]+m[1]
			if v := start(s.text[from:to]); len(v) > leastRandom && s.begins(from) && (isPrefixed(v) || isDotted(v)) {
				list = append(list, found{from, to, "api-key"})
			}
		}
		if from := s.assigned(run[0], run[1]); from > 0 {
			list = append(list, found{from, run[1], secret})
		}
	}
	return list
}

// assigned returns the start of the random value in a run of characters; 0 if there is
// none. The name and the sign are in the run, or before it.
func (s *scan) assigned(from, to int) int {
	if to < len(s.text) && s.text[to] == '(' { // a call
		return 0
	}
	if m := inside.FindStringSubmatchIndex(s.text[from:to]); m != nil {
		if name := s.text[from+m[2] : from+m[3]]; wordy(name) && !strings.ContainsAny(name, "0123456789") {
			from += m[3]
		}
	}
	end := len(strings.TrimRight(s.text[:from], "=:>|?,`'\" \t\\"))
	if end == 0 || from-end > longestGap {
		return 0
	}
	for from < to && (s.text[from] == '-' || s.text[from] == '=') {
		from++
	}
	name, sign := ending.FindString(s.text[max(0, end-maxName):end]), s.text[end:from]
	comma := strings.Count(sign, ",") == 1 && strings.ContainsAny(sign, "\"'`") // setenv("NAME", "value")
	signed := comma || strings.ContainsAny(sign, "=:>") || strings.Contains(sign, "||") || from > end && confides(name)
	said := strings.Contains(name, " ") && !strings.ContainsAny(sign, "=|,") && !confides(name) && !strings.HasSuffix(strings.ToLower(name), "key") // "the last one: …"
	if !signed || said || to-from < leastValue || !isAssigned(name, start(s.text[from:to])) {
		return 0
	}
	return from
}

// isAssigned reports whether a name has a random value. The value of an identifier
// is no secret.
func isAssigned(name, v string) bool {
	v = strings.TrimRight(v, ".=")
	words := slices.DeleteFunc(parts(name), func(w string) bool { return w == "key" })
	if len(words) == 0 || words[0] == "redacted" || strings.Trim(words[0], numerals) == "" || len(v) < leastValue {
		return false
	}
	for _, w := range words[max(0, len(words)-2):] {
		if !confides(name) && identifiers[w] || identifiers[strings.TrimSuffix(w, "s")] {
			return false
		}
	}
	if v[0] == '/' || v[0] == '+' || strings.HasPrefix(v, "v0.") || strings.HasPrefix(v, "v1.") || isHarmless(v) || isCode(v) {
		return false
	}
	if identifies(v) {
		last := name[strings.LastIndexByte(name, ' ')+1:]
		return len(v) != 36 || confides(name) || last == strings.ToUpper(last)
	}
	all := strings.FieldsFunc(v, isSign)
	return slices.ContainsFunc(all, func(w string) bool {
		return len(w) >= leastValue && isMixed(w) && (len(w) >= leastHash || !isHex(w))
	}) || mixes(v, 30) && isMixed(v) && !slices.ContainsFunc(all, isWord)
}

// isDotted reports whether a text has two random parts around dots, or one behind "s." of Vault.
func isDotted(v string) bool {
	all := strings.Split(v, ".")
	random := len(slices.DeleteFunc(slices.Clone(all), func(w string) bool { return !isRandom(w) }))
	return len(all) <= 3 && (random > 1 || random == 1 && len(all) == 2 && all[0] == "s")
}

// isPrefixed reports whether a text has a prefix, a sign and a random part. Names of
// branches, which are longer than a prefix, may end with a hash.
func isPrefixed(v string) bool {
	prefix, rest, ok := strings.Cut(strings.ReplaceAll(v, "_", "-"), "-")
	if !ok || prefix == "" || strings.Contains(v, ".") || len(prefix) > maxPrefix || !isLetter(v[0]) || identifiers[strings.ToLower(prefix)] || isHarmless(v) {
		return false
	}
	all := strings.Split(rest, "-")
	if slices.ContainsFunc(all, func(w string) bool { return isRandom(w) && (len(prefix) <= maxSure || !isHex(w)) }) {
		return true
	}
	return len(prefix) <= maxSure && mixes(rest, 35) && !slices.ContainsFunc(all, isWord) &&
		isRandom(strings.ReplaceAll(rest, "-", "")) // random characters may be signs
}

// isRandom reports whether a part of a token is random.
func isRandom(v string) bool {
	return identifies(v) || len(v) >= leastRandom && strings.Trim(v, numerals) != "" && isMixed(v) && entropy(v) >= 3
}

// isMixed reports whether letters and digits are mixed at random.
func isMixed(v string) bool {
	numbers, letters := 0, 0
	for i := range len(v) {
		switch {
		case isDigit(v[i]):
			numbers++
		case isLetter(v[i]):
			letters++
		}
	}
	words := len(parts(v))
	joined := numbers == 1 && words > 2 && len(v) >= 3*words // getUserById2
	return letters > 1 && (numbers > 0 || len(v) >= leastLetters && mixes(v, 40)) && !joined && !wordy(v) && entropy(v) >= 2.8
}

const numerals = "0123456789"

func isHex(v string) bool  { return strings.Trim(strings.ToLower(v), numerals+"abcdef") == "" }
func isSign(c rune) bool   { return c >= utf8.RuneSelf || !isAlnum(byte(c)) }
func isWord(w string) bool { return len(w) > 2 && wordLike(w) && strings.Trim(w, numerals) != "" }
