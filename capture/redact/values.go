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

//go:embed words.txt
var wordsText string

var (
	describing  = wordsIn(0) // words of placeholders such as "your-key-here", and names of types
	placing     = wordsIn(1) // words that make a value with digits a placeholder
	identifiers = wordsIn(2) // names of messages, calls, hashes and builds, which are no secrets
)

// wordsIn returns the words of a paragraph of words.txt.
func wordsIn(paragraph int) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(strings.Split(wordsText, "\n\n")[paragraph]) {
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
		case strings.Trim(w, numerals) == "":
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
func start(v string) string { return v[:min(len(v), maxValue)] }

// placeholders match variables, templates, masks and redacted secrets. The signs of the
// second occur in random values, too.
var placeholders = [2]*regexp.Regexp{
	regexp.MustCompile(`(?i:\[redacted)|EXAMPLE|…|\.\.\.|^<.*>|^\[.*\]|^\{.*\}|^[*.•·●=#?…xX_-]*$|^(?i:your[-_]?)?(?i:pass|pwd|passwd|password)$`),
	regexp.MustCompile(`\$[{(]|\{\{|<%|[%#]\{|%s|^\(.*\)|^%\w+%$|^@\w+@$|^\$[A-Za-z_]\w*(?:/|$)`),
}

// isPlaceholder reports whether a value is a placeholder, or one repeated character.
func isPlaceholder(v string) bool {
	return placeholders[0].MatchString(v) || placeholders[1].MatchString(v) && (len(v) < 32 || !mixes(v, 50)) ||
		strings.Trim(v, v[:1]) == "" && !isDigit(v[0])
}

// references match addresses, references to stores of secrets, and, if they consist of
// words, paths and names of files.
var references = [2]*regexp.Regexp{
	regexp.MustCompile(`^(?:[^:]{1,15}://|(?:vault|arn|@?env|file|data|ssm|op):|[A-Za-z]:[\\/].)`),
	regexp.MustCompile(`^(?:~|\.\.?)?/.|.\.(?i:pem|key|crt|cer|json|ya?ml|txt|toml|env|p12|pfx|jks|conf|cfg|ini|gpg|pub|go|py|js|ts|rb|php|java|sh|html|md)$`),
}

// elsewhere reports whether a value refers to a secret.
func elsewhere(v string) bool {
	return references[0].MatchString(v) || references[1].MatchString(v) && wordy(v)
}

// isHarmless reports whether a value is on the stop list: it is a placeholder, describes a
// secret or refers to one.
func isHarmless(v string) bool { return describes(v) || isPlaceholder(v) || elsewhere(v) }

// expressions match calls, and names that have dots if they consist of words.
var expressions = [2]*regexp.Regexp{
	regexp.MustCompile(`^[*&!(]*[A-Za-z_][\w.]*(?:[(\[{]|->|::|\?\.)`),
	regexp.MustCompile(`^[*&!]*[A-Za-z_]\w*(?:\.\w+)+$`),
}

// isCode reports whether a value is an expression, and not the value itself.
func isCode(v string) bool {
	return expressions[0].MatchString(v) || expressions[1].MatchString(v) && wordy(v)
}

// wordy reports whether a token consists of words, like a name, and is not random.
func wordy(v string) bool {
	all := strings.FieldsFunc(v, isSign)
	return len(all) > 0 && isToken(v) && !identifies(v) && !slices.ContainsFunc(all, func(w string) bool { return !wordLike(w) })
}

// wordLike reports whether letters and digits are like a word, an abbreviation, a small
// number, or several words joined in camel case.
func wordLike(w string) bool {
	if len(w) <= 4 {
		return true
	}
	letters := strings.TrimRight(w, numerals)
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
	if len(w)-len(letters) <= 2 && !strings.ContainsAny(letters, numerals) {
		return humps <= 1+len(letters)/4
	}
	if describing[strings.ToLower(w)] {
		return true
	}
	// With numbers in it, as in testKey2048Private.
	return humps > 1 && length >= 4*humps && len(w)-length <= 5 && strings.ToLower(w) != w && strings.ToUpper(w) != w
}

var (
	vowels     = regexp.MustCompile(`[aeiouy]|^.{0,4}$`)
	consonants = regexp.MustCompile(`[^aeiouy]{6}`)
	identity   = regexp.MustCompile(`(?i)^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
)

// pronounceable reports whether a lower-case word has vowels as often as real words.
func pronounceable(w string) bool { return !consonants.MatchString(w) && vowels.MatchString(w) }

// identifies reports whether a value is a UUID, or a hash such as git's.
func identifies(v string) bool { return len(v) >= 32 && len(v)%4 == 0 && identity.MatchString(v) }

// telling reports whether a value is like a password among words and code: it has letters
// with digits or signs, or digits alone.
func telling(v string) bool {
	v = strings.TrimLeft(strings.TrimRight(v, ".,;:!?"), "&*")
	switch {
	case len(v) < 6 || strings.Contains(v, "::") || strings.Contains(v, "->"):
		return false
	case strings.IndexFunc(v, unicode.IsLetter) < 0:
		return strings.Trim(v, numerals) == ""
	case strings.ContainsAny(v, "!@#$%^&*+~?"):
		return true
	}
	return strings.ContainsAny(v, numerals) && slices.ContainsFunc(parts(v), func(w string) bool {
		w = strings.Trim(w, numerals)
		return len(w) > 1 && !describing[w]
	})
}

// isToken matches a value that has only the characters of random tokens.
var isToken = regexp.MustCompile(`^[\w.+/=~:@%|-]*$`).MatchString

// mixes reports whether the kind of character (small letters, capitals, digits, signs)
// changes at no less than this percentage of a value's characters.
func mixes(v string, percent int) bool {
	changes := 0
	for i := 1; i < len(v); i++ {
		if a, b := v[i-1], v[i]; isLower(a) != isLower(b) || isUpper(a) != isUpper(b) || isDigit(a) != isDigit(b) {
			changes++
		}
	}
	return 100*changes >= percent*len(v)
}

// entropy returns the Shannon entropy of a text, in bits per character.
func entropy(s string) (bits float64) {
	count := make(map[byte]float64)
	for i := range len(s) {
		count[s[i]]++
	}
	for _, n := range count {
		bits -= n / float64(len(s)) * math.Log2(n/float64(len(s)))
	}
	return bits
}

// confides matches a name that announces a secret, and not merely a key that identifies
// something.
var confides = regexp.MustCompile(`(?i)api|secret|token|passw|cred|private|auth|access|jwt`).MatchString

func isName(c byte) bool   { return isAlnum(c) || c == '_' || c == '-' }
func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }
func isGraph(c byte) bool  { return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '`' }
