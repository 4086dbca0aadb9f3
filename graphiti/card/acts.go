package card

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// signs matches signs of something to fetch or run: an address, a path, a pipe or another sign of
// a shell, a flag.
var signs = regexp.MustCompile("[|`$&\\\\]|://|(?:^|[\\s'\"(])(?:www\\.|[.~]{0,2}/\\w|-{1,2}[a-zA-Z]|[\\w-]+(?:\\.[\\w-]+)+/)")

// host matches a name with a dot, such as an address without a scheme.
var host = regexp.MustCompile(`[\pL\pN_-]+(?:\.[\pL\pN_-]+)*\.([\pL\pN_-]+)`)

// notHosts are the last parts of the names of files and of technologies, which no host has, and
// the most common one of files that also ends hosts.
var notHosts = strings.Fields("js ts tsx jsx json yaml yml toml txt css html sql env lock go java c h cpp rb php xml csv log md")

// Acts reports whether a text may make a model fetch, run or install something: it has a sign or a
// host of such a text, or a word for it, unless the text begins with its prohibition.
func Acts(text string) bool {
	text = norm.NFKC.String(text)
	if signs.MatchString(text) {
		return true
	}
	for _, m := range host.FindAllStringSubmatch(text, -1) {
		if last := strings.ToLower(m[1]); !strings.ContainsFunc(last, unicode.IsLetter) && strings.Count(m[0], ".") > 2 || strings.ContainsFunc(last, unicode.IsLetter) && !slices.Contains(notHosts, last) {
			return true
		}
	}
	said := saidIn(text)
	n := 0
	if m, size := markAt(said, 0); m.forbids {
		n = size + 1 // "never run terraform apply"
	}
	checks := namesChecks(said)
	for ; n < len(said); n++ {
		for w := range strings.FieldsFuncSeq(said[n], func(r rune) bool { return !isWordRune(r) }) {
			if runs.have(w) && (!checks || !plainRuns.have(w)) {
				return true
			}
		}
	}
	return false
}

// namesChecks reports whether the first thing that is run are the checks of a project, such as "all tests".
func namesChecks(said []string) bool {
	ran, content := false, termsOf(strings.Join(said, " "))
	for _, w := range said {
		w = bareOf(w)
		r, _ := utf8.DecodeRuneInString(w)
		switch ran = ran || plainRuns.have(w); {
		case r >= firstUnspaced && !unicode.Is(unicode.Hangul, r):
			return checking.have(w) && !strings.ContainsFunc(w, func(r rune) bool { return r < firstUnspaced && unicode.IsLetter(r) })
		case checking.have(w):
			return true
		case ran && content[stem(words.Term(w))] && !plainRuns.have(w):
			return false
		}
	}
	return false
}
