package redact

import (
	_ "embed"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// describing are the words of placeholders such as "your-key-here", and names of types.
var describing = wordsIn(wordsText)

//go:embed words.txt
var wordsText string

// placing are the describing words that mark a value with digits as a placeholder.
var placing = wordsIn(`changeit changeme dummy example fake foo here insert placeholder redacted replace sample tbd todo your yourpassword`)

func wordsIn(list string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// describes reports whether a value is a placeholder: it consists of describing words, and
// if it has numbers too, one of the words is in placing or a row of x.
func describes(v string) bool {
	letters, digits, placed := 0, false, false
	for _, w := range parts(v) {
		switch {
		case strings.Trim(w, "0123456789") == "":
			digits = true
			continue
		case strings.Trim(w, "x") == "":
			placed = true
		case !describing[w]:
			return false
		}
		letters += len(w)
		placed = placed || placing[w]
	}
	return letters > 0 && (!digits || placed)
}

// parts returns the words of a value in lower case, split at ASCII characters other than
// letters and digits, and at the humps of camel case.
func parts(v string) (list []string) {
	start := 0
	flush := func(end int) {
		if end > start {
			list = append(list, strings.ToLower(v[start:end]))
		}
	}
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case !isAlnum(c) && c < utf8.RuneSelf:
			flush(i)
			start = i + 1
		case i > start && isUpper(c) && (isLower(v[i-1]) || i+1 < len(v) && isUpper(v[i-1]) && isLower(v[i+1])):
			flush(i)
			start = i
		}
	}
	flush(len(v))
	return list
}

// start returns the start of a token or a value: enough to classify it.
func start(v string) string { return v[:min(len(v), 256)] }

// isPlaceholder reports whether a value is a placeholder: a variable, a template, a mask, or a
// redacted secret.
func isPlaceholder(v string) bool {
	containsAny := func(list ...string) bool {
		return slices.ContainsFunc(list, func(in string) bool { return strings.Contains(v, in) })
	}
	inside := func(open, shut string) bool {
		return strings.HasPrefix(v, open) && strings.Contains(v[len(open):], shut)
	}
	switch {
	case v == "" || containsAny("[redacted", "[REDACTED", "EXAMPLE", "…", "..."):
		return true
	case inside("<", ">") || inside("[", "]") || inside("{", "}"):
		return true
	case len(v) >= 2*tokenLen && mixes(v, 50):
		return false // the signs of the next cases occur in random values, too
	case containsAny("${", "$(", "{{", "<%", "%{", "#{", "%s") || inside("(", ")"):
		return true
	case (v[0] == '%' || v[0] == '@') && len(v) > 2 && v[len(v)-1] == v[0] && strings.Trim(v[1:len(v)-1], nameChars) == "":
		return true
	case len(v) > 1 && v[0] == '$' && (isLetter(v[1]) || v[1] == '_'):
		if rest := strings.TrimLeft(v[1:], nameChars); rest == "" || rest[0] == '/' {
			return true
		}
	}
	return strings.Trim(v, "*.•·●-_=#?…") == "" || strings.Trim(v, "xX-_") == "" || strings.Trim(v, string(v[0])) == "" && !isDigit(v[0])
}

const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// elsewhere reports whether a value refers to a secret: it is an address, a path, the name
// of a file, or a reference to a store of secrets.
func elsewhere(v string) bool {
	if scheme, rest, ok := strings.Cut(v, ":"); ok && len(scheme) < 16 && (strings.HasPrefix(rest, "//") ||
		scheme == "vault" || scheme == "arn" || scheme == "env" || scheme == "@env" || scheme == "file" || scheme == "data" || scheme == "ssm" || scheme == "op") {
		return true
	}
	if isPath(v) {
		return true
	}
	if i := strings.LastIndexByte(v, '.'); i > 0 && len(v)-i <= 6 {
		switch strings.ToLower(v[i+1:]) {
		case "pem", "key", "crt", "cer", "json", "yaml", "yml", "txt", "toml", "env", "p12", "pfx", "jks", "conf", "cfg", "ini", "gpg", "pub", "go", "py", "js", "ts", "rb", "php", "java", "sh", "html", "md":
			return wordy(v[:i])
		}
	}
	return false
}

func isPath(v string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(v, "~"), ".."), ".")
	if len(rest) < 2 || rest[0] != '/' {
		return len(v) > 3 && isLetter(v[0]) && v[1] == ':' && (v[2] == '\\' || v[2] == '/')
	}
	for _, part := range strings.Split(rest[1:], "/") {
		if part != "" && !wordy(part) {
			return false
		}
	}
	return true
}

// roots are common first names of expressions.
var roots = wordsIn(`app args body c cfg conf config context credentials ctx data db document e env environ event form import input json local localstorage
	module opts option options os params payload process props r req request res resp response result row s secrets self session
	sessionstorage settings state store system this user var vars viper window`)

// isCode reports whether a value is an expression, and not the value itself. Settings
// contain few expressions.
func isCode(v string, setting bool) bool {
	v = strings.TrimLeft(v, "*&!")
	i := strings.IndexAny(v, ".[({-:?")
	if i <= 0 || !identifier(v[:i]) {
		return false
	}
	rest := v[i:]
	if roots[strings.ToLower(v[:i])] {
		switch {
		case strings.HasPrefix(rest, "["), strings.HasPrefix(rest, "("), strings.HasPrefix(rest, "->"), strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, "?."):
			return true
		case rest[0] == '.' && identifier(rest[1:]):
			return true
		}
	}
	if setting {
		return strings.HasSuffix(v, "()")
	}
	return strings.IndexByte("([{", rest[0]) >= 0 || identifier(v) && (wordy(v) || strings.ContainsAny(v, "(["))
}

// expression matches an identifier, which may have dots, or the beginning of a call.
var expression = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*(?:[(\[]|$)`)

func identifier(v string) bool { return expression.MatchString(v) }

// wordy reports whether a token consists of words, like a name, and is not random.
func wordy(v string) bool {
	if identifies(v) {
		return false
	}
	start, any := 0, false
	for i := 0; i <= len(v); i++ {
		if i < len(v) && isAlnum(v[i]) {
			continue
		}
		if i < len(v) && strings.IndexByte("-_.:/~+=@", v[i]) < 0 {
			return false
		}
		if i > start {
			if !wordLike(v[start:i]) {
				return false
			}
			any = true
		}
		start = i + 1
	}
	return any
}

// wordLike reports whether letters and digits are like a word, an abbreviation, a small
// number, or several words joined in camel case.
func wordLike(w string) bool {
	if len(w) <= 4 {
		return true
	}
	letters := strings.TrimRight(w, "0123456789")
	if len(letters) == 0 {
		return len(w) <= 8 // a date
	}
	humps, length := 0, 0
	for _, p := range parts(w) {
		for _, hump := range strings.FieldsFunc(p, unicode.IsDigit) {
			if len(hump) > 20 || !pronounceable(hump) {
				return false
			}
			humps++
			length += len(hump)
		}
	}
	if len(w)-len(letters) <= 2 && !strings.ContainsAny(letters, "0123456789") {
		return humps <= 1+len(letters)/4
	}
	if describing[strings.ToLower(w)] {
		return true
	}
	// With numbers in it, as in testKey2048Private.
	return humps > 1 && length >= 4*humps && len(w)-length <= 5 && strings.ToLower(w) != w && strings.ToUpper(w) != w
}

var consonants = regexp.MustCompile(`[^aeiouy]{6}`)

// pronounceable reports whether a lower-case word has vowels as often as real words.
func pronounceable(w string) bool {
	return !consonants.MatchString(w) && (len(w) <= 4 || strings.ContainsAny(w, "aeiouy"))
}

var identity = regexp.MustCompile(`(?i)^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// identifies reports whether a value is a UUID, or a hash such as git's.
func identifies(v string) bool { return len(v) >= 32 && len(v)%4 == 0 && identity.MatchString(v) }

// telling reports whether a value is like a password among words and code: it has letters
// with digits or signs, or digits alone.
func telling(v string) bool {
	v = strings.TrimLeft(strings.TrimRight(v, ".,;:!?"), "&*")
	if len(v) < 6 || strings.Contains(v, "::") || strings.Contains(v, "->") {
		return false
	}
	letters, digits, signs := 0, 0, 0
	for _, c := range v {
		switch {
		case unicode.IsLetter(c):
			letters++
		case unicode.IsDigit(c):
			digits++
		case strings.ContainsRune("!@#$%^&*+~?", c):
			signs++
		}
	}
	if letters == 0 {
		return digits == utf8.RuneCountInString(v)
	}
	if digits == 0 && signs == 0 {
		return false
	}
	for _, w := range parts(v) {
		if w = strings.Trim(w, "0123456789"); len(w) > 1 && !describing[w] {
			return true
		}
	}
	return signs > 0
}

// isToken reports whether a value has only the characters of random tokens.
func isToken(v string) bool { return strings.Trim(v, nameChars+"-.+/=~:@%|") == "" }

// mixes reports whether the kind of character (small letters, capitals, digits, signs)
// changes at no less than this percentage of a value's characters.
func mixes(v string, percent int) bool {
	changes := 0
	for i := 1; i < len(v); i++ {
		if class(v[i]) != class(v[i-1]) {
			changes++
		}
	}
	return 100*changes >= percent*len(v)
}

func class(c byte) byte {
	switch {
	case isLower(c):
		return 'a'
	case isUpper(c):
		return 'A'
	case isDigit(c):
		return '0'
	}
	return '-'
}

// generated reports whether a token may be random.
func generated(v string) bool {
	v = start(v)
	return !wordy(v) && !isPlaceholder(v) && !describes(v) && entropy(v) > 2.5
}

// entropy returns the Shannon entropy of a text, in bits per character.
func entropy(s string) (bits float64) {
	count := make(map[rune]int)
	n := 0
	for _, c := range s {
		count[c]++
		n++
	}
	for _, c := range count {
		p := float64(c) / float64(n)
		bits -= p * math.Log2(p)
	}
	return bits
}

// confides reports whether a name announces a secret, and not merely a key that identifies
// something.
func confides(name string) bool {
	name = strings.ToLower(name)
	for _, w := range []string{"api", "secret", "token", "passw", "cred", "private", "auth", "access", "jwt"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
