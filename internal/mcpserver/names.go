package mcpserver

import (
	"slices"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	mostName  = 80 // characters
	mostWords = 50 // of a query
)

// namesIn returns the names in a text that contain a word of a query, each once. A name is a
// word with a capital letter or a digit, or in a script without case, with its capitalized
// neighbors.
func namesIn(text string, asked []string) (names []string) {
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./@-", r)
	})
	ends := func(i int) bool { return i < 0 || i >= len(list) || strings.IndexFunc(list[i], unicode.IsUpper) != 0 }
	for i, w := range list {
		isName := strings.ContainsFunc(w, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) || unicode.Is(unicode.Lo, r) })
		if !isName || !slices.ContainsFunc(words.Of(w, len(asked)), func(part string) bool { return slices.Contains(asked, part) }) {
			continue
		}
		from, to := i, i+1
		for !ends(i) && !ends(from-1) && !strings.HasSuffix(list[from-1], ".") {
			from--
		}
		for !ends(i) && !ends(to) && !strings.HasSuffix(list[to-1], ".") {
			to++
		}
		if name := graphiti.OneLine(strings.Trim(strings.Join(list[from:to], " "), "./-"), mostName); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
