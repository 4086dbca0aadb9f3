package client

import (
	"bytes"
	"slices"
	"strings"
)

// What all clients write into a person's messages.
var (
	harnessTags     = gather(func(cl *client) []string { return cl.tags })
	harnessTexts    = byStart(gather(func(cl *client) []mark { return cl.texts }))
	harnessPrefaces = gather(func(cl *client) []preface { return cl.from })
	harnessTails    = inBytes(gather(func(cl *client) []string { return cl.tails }))
	harnessFiles    = gather(func(cl *client) [][2]string { return cl.files })
	filesBegin      = inBytes(firsts(harnessFiles))
	wordsWithin     = gather(func(cl *client) []string { return cl.within })
	wordsAround     = gather(func(cl *client) []string { return cl.around })
	ownAnswers      = gather(func(cl *client) []string { return cl.answers })
)

func gather[T any](of func(*client) []T) (all []T) {
	for i := range clients {
		all = append(all, of(&clients[i])...)
	}
	return all
}

func firsts(pairs [][2]string) (out []string) {
	for _, p := range pairs {
		out = append(out, p[0])
	}
	return out
}

// inBytes are texts as they are sought in others, for which nothing is copied
// then.
func inBytes(texts []string) (all [][]byte) {
	for _, t := range texts {
		all = append(all, []byte(t))
	}
	return all
}

func byStart(marks []mark) (by [256][]mark) {
	for _, m := range marks {
		by[m.start[0]] = append(by[m.start[0]], m)
	}
	return by
}

// MayHold reports whether a part of a person's message, as it stands in a JSON
// string without white space around it, may hold what a client wrote, apart from
// elements.
func MayHold(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	for i := range harnessTexts[raw[0]] {
		if startsRaw(raw, harnessTexts[raw[0]][i].start) {
			return true
		}
	}
	for i := range harnessPrefaces {
		if startsRaw(raw, harnessPrefaces[i].start) {
			return true
		}
	}
	return slices.ContainsFunc(filesBegin, func(t []byte) bool { return bytes.Contains(raw, t) }) || tail(raw) >= 0
}

// startsRaw reports whether a text, as it stands in a JSON string, may begin with
// one that has line feeds in it.
func startsRaw(raw []byte, start string) bool {
	start, _, _ = strings.Cut(start, "\n")
	return begins(raw, start)
}

// begins is bytes.HasPrefix for a string, of which nothing is copied.
func begins(text []byte, with string) bool {
	return len(text) >= len(with) && string(text[:len(with)]) == with
}

// tail is where a text of a client begins that goes on to the end, or -1.
func tail(text []byte) int {
	for _, t := range harnessTails {
		if i := bytes.Index(text, t); i >= 0 {
			return i
		}
	}
	return -1
}

// Conversation is what Words asks of the one that a text is of.
type Conversation interface {
	// Opens reports whether the message opens the conversation, and the system
	// prompt holds a text.
	Opens(prompt string) bool

	// After reports whether there is time for so many bytes more.
	After(bytes int) bool
}

// Words takes out of a part of a message what the person did not write. What is
// left may be a part of text.
func Words(text []byte, in Conversation) []byte {
	opened := openedIn(text)
	for n, tag := range harnessTags {
		if opened[n] && in.After(len(text)) {
			text = WithoutElement(text, tag)
		}
	}
	text = words(behindPreface(trim(text)))
	if len(text) == 0 || isHarness(text, in) {
		return nil
	}
	// In a paragraph of its own: a person may ask about it.
	if i := tail(text); i == 0 || i > 1 && text[i-1] == '\n' && text[i-2] == '\n' {
		text = text[:i]
	}
	return text
}

// isHarness reports whether a part of a message is one that clients write.
func isHarness(text []byte, in Conversation) bool {
	for _, m := range harnessTexts[text[0]] {
		if bytes.HasPrefix(text, []byte(m.start)) && (!m.whole || len(text) == len(m.start)) &&
			bytes.Contains(text[len(m.start):], []byte(m.then)) && (m.opens == "" || in.Opens(m.opens)) {
			return true
		}
	}
	return false
}

// Answers reports whether an answer that starts so is one of a client itself, to
// a summary that it put into a message.
func Answers(start []byte) bool {
	return slices.ContainsFunc(ownAnswers, func(s string) bool { return bytes.HasPrefix(start, []byte(s)) })
}

// behindPreface is a text without what a client put before it.
func behindPreface(text []byte) []byte {
	for _, p := range harnessPrefaces {
		if !bytes.HasPrefix(text, []byte(p.start)) {
			continue
		}
		if words, found := behindLine(text, p.end, p.behind); found {
			return trim(words)
		}
	}
	return text
}

// behindLine is what stands behind the last line that is only this, or that ends
// with it.
func behindLine(text []byte, line string, ends bool) (behind []byte, found bool) {
	for end := len(text); ; {
		i := bytes.LastIndex(text[:end], []byte(line))
		if i < 0 {
			return nil, false
		}
		behind = text[i+len(line):]
		if (ends || i == 0 || text[i-1] == '\n') && (len(behind) == 0 || behind[0] == '\n' || behind[0] == '\r') {
			return behind, true
		}
		end = i
	}
}

// words are the person's in a text in which a client has put them into an
// element.
func words(text []byte) []byte {
	for _, tag := range wordsWithin {
		before, rest, ok := bytes.Cut(text, []byte("<"+tag+">"))
		if !ok || len(before) > 0 && before[0] != '<' {
			continue // a person asks about it
		}
		i := bytes.LastIndex(rest, []byte("</"+tag+">"))
		if i < 0 {
			continue
		}
		words, behind := trim(rest[:i]), trim(rest[i+len(tag)+3:])
		if len(behind) == 0 || behind[0] == '<' || bytes.Equal(words, behind) {
			text = words
		}
	}
	for _, tag := range wordsAround {
		inner, opened := bytes.CutPrefix(text, []byte("<"+tag))
		inner, shut := bytes.CutSuffix(inner, []byte("</"+tag+">"))
		if i := bytes.IndexByte(inner, '>'); opened && shut && i >= 0 && (i == 0 || isSpace(inner[0])) {
			text = trim(inner[i+1:])
		}
	}
	return text
}

// WithoutFiles takes out of a part what stands between the lines with which a client
// begins and ends what it attaches. until is the line that ends what an earlier
// part began; it returns the one that a later part may end.
func WithoutFiles(text []byte, until string) (_ []byte, _ string) {
	if until != "" {
		_, behind, found := cutLine(text, until)
		if !found {
			return nil, until
		}
		text = behind
	}
	for _, f := range harnessFiles {
		var out []byte
		for rest := text; ; {
			before, behind, found := cutLine(rest, f[0])
			if !found {
				if out != nil {
					text = append(out, rest...)
				}
				break
			}
			out = append(out, before...)
			if _, rest, found = cutLine(behind, f[1]); !found {
				return out, f[1]
			}
		}
	}
	return text, ""
}

// cutLine is what stands before and behind the first line that is only this.
func cutLine(text []byte, line string) (before, behind []byte, found bool) {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(line))
		if i < 0 {
			return text, nil, false
		}
		i += at
		at = i + len(line)
		if (i == 0 || text[i-1] == '\n') && (at == len(text) || text[at] == '\n' || text[at] == '\r') {
			return text[:i], text[at:], true
		}
	}
}

// maxTags bounds harnessTags.
const maxTags = 96

// openedIn tells which of harnessTags may open in a text: most texts with a
// bracket in them hold none, and those with many need not be read for each.
func openedIn(text []byte) (opened [maxTags]bool) {
	for {
		i := bytes.IndexByte(text, '<') + 1
		if i == 0 {
			return opened
		}
		text = text[i:]
		if len(text) == 0 {
			return opened
		}
		for _, n := range tagsBy[text[0]] {
			tag := harnessTags[n]
			opened[n] = opened[n] || len(text) > len(tag) && string(text[:len(tag)]) == tag
		}
	}
}

// tagsBy are places in harnessTags, by the byte that a tag begins with.
var tagsBy = func() (by [256][]int) {
	if len(harnessTags) > maxTags {
		panic("BUG: too many tags")
	}
	for n, tag := range harnessTags {
		by[tag[0]] = append(by[tag[0]], n)
	}
	return by
}()

// WithoutElement takes out every <tag …>…</tag>, with those of its like that stand
// within. One that is not closed is left; of several of which some are not, the
// last end closes the first. Its time is linear in the text's size.
func WithoutElement(text []byte, tag string) []byte {
	open, shut := []byte("<"+tag), []byte("</"+tag+">")
	var out []byte
	kept := 0                  // up to where out has what is left of text
	depth, from, to := 0, 0, 0 // how many are open, where the first one begins, and where the last one was shut that it holds
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

// opening is where the next element opens from a place on, or the end.
func opening(text, open []byte, at int) int {
	for {
		i := indexFrom(text, open, at)
		if at = i + len(open); at >= len(text) {
			return len(text)
		}
		if c := text[at]; c == '>' || isSpace(c) { // else it is a longer name
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

func trim(text []byte) []byte { return bytes.Trim(text, " \n\t\r") }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
