package dialect

import (
	"bytes"
	"slices"
	"strings"
)

// withoutElements cuts out, for each tag of the table, everything from its first
// beginning to its last end. A tag that opens the text and never ends covers all of
// it.
func withoutElements(text []byte, in within) []byte {
	var cuts [][2]int
	for _, tag := range openedIn(text, in) {
		if !in.c.after(len(text)) {
			break
		}
		from, end := opening(text, []byte("<"+tag), 0), []byte("</"+tag+">")
		switch i := bytes.LastIndex(text, end); {
		case i > from:
			cuts = append(cuts, [2]int{from, i + len(end)})
		case from == 0:
			return nil
		}
	}
	return without(text, cuts)
}

// openedIn returns the tags of the table that open in a text.
func openedIn(text []byte, in within) (tags []string) {
	for in.c.after(1) {
		i := bytes.IndexByte(text, '<')
		if i < 0 {
			break
		}
		text = text[i+1:]
		if tag := nameAt(text); harnessTags[string(tag)] && !slices.Contains(tags, string(tag)) {
			tags = append(tags, string(tag))
		}
	}
	return tags
}

// without returns a text without some parts, which may overlap.
func without(text []byte, cuts [][2]int) []byte {
	if len(cuts) == 0 {
		return text
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return a[0] - b[0] })
	out, at := make([]byte, 0, len(text)), 0
	for _, c := range cuts {
		if c[0] > at {
			out = append(out, text[at:c[0]]...)
		}
		at = max(at, c[1])
	}
	return append(out, text[at:]...)
}

// WithoutElement cuts every <tag …>…</tag> out of a text, as withoutElement does.
func WithoutElement(text, tag string) string {
	if !strings.Contains(text, "<"+tag) {
		return text
	}
	return string(withoutElement([]byte(text), tag))
}

// withoutElement cuts every <tag …>…</tag> out of a text, with those nested in it. An
// element without an end stays; if some of several have no end, the last end closes the
// first. Its time is linear in the text's size.
func withoutElement(text []byte, tag string) []byte {
	open, shut := []byte("<"+tag), []byte("</"+tag+">")
	var out []byte
	kept := 0                  // the position up to which out is complete
	depth, from, to := 0, 0, 0 // number of open elements, offset of the first, and end of the last one closed in it
	cut := func() {
		out = append(out, text[kept:from]...)
		kept, depth, to = to, 0, 0
	}
	nextOpen, nextShut := -1, -1
	for at := 0; ; {
		if nextOpen < at {
			nextOpen = opening(text, open, at)
		}
		if nextShut < at {
			nextShut = indexFrom(text, shut, at)
		}
		switch {
		case nextOpen < nextShut:
			if depth++; depth == 1 {
				from = nextOpen
			}
			at = nextOpen + len(open)
		case nextShut < len(text):
			at = nextShut + len(shut)
			if depth > 0 {
				depth--
				if to = at; depth == 0 {
					cut()
				}
			}
		default:
			if to > 0 {
				cut()
			}
			if kept == 0 {
				return text
			}
			return append(out, text[kept:]...)
		}
	}
}

// opening returns the offset of the next opening tag from at on, or the end.
func opening(text, open []byte, at int) int {
	for {
		i := indexFrom(text, open, at)
		if at = i + len(open); at >= len(text) {
			return len(text)
		}
		if c := text[at]; c == '>' || isSpace(c) { // otherwise it is a longer name
			return i
		}
	}
}

func indexFrom(text, sep []byte, at int) int {
	if i := bytes.Index(text[at:], sep); i >= 0 {
		return at + i
	}
	return len(text)
}
