package dialect

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// The rules of all clients for their additions to a person's messages.
var (
	harnessTags     = set(gather(func(cl *client) []string { return cl.Tags }))
	harnessTexts    = byStart(gather(func(cl *client) []textMark { return cl.Texts }))
	harnessPrefaces = gather(func(cl *client) []preface { return cl.From })
	harnessTails    = inBytes(gather(func(cl *client) []string { return cl.Tails }))
	harnessFiles    = gather(func(cl *client) [][2]string { return cl.Files })
	wordsWithin     = gather(func(cl *client) []string { return cl.Within })
	wordsAround     = gather(func(cl *client) []string { return cl.Around })
	interruptions   = gather(func(cl *client) []string { return cl.Interrupted })
	quoters         = gather(func(cl *client) []string { return cl.Quotes })
	ownAnswers      = gather(func(cl *client) []string { return cl.Answers })
)

func gather[T any](of func(*client) []T) (all []T) {
	for i := range clients {
		all = append(all, of(&clients[i])...)
	}
	return all
}

func set(names []string) map[string]bool {
	all := make(map[string]bool)
	for _, name := range names {
		all[name] = true
	}
	return all
}

// inBytes returns texts as bytes, so that a search for them copies nothing.
func inBytes(texts []string) (all [][]byte) {
	for _, t := range texts {
		all = append(all, []byte(t))
	}
	return all
}

func byStart(marks []textMark) (by [256][]textMark) {
	for _, m := range marks {
		by[m.Start[0]] = append(by[m.Start[0]], m)
	}
	return by
}

// signs are the characters that, if doubled, begin a line that people paste or clients
// attach: a fence, a rule, a heading, a frame.
var signs = []byte("`~-=#*_<>[|{+")

// begins is bytes.HasPrefix with a string, without a copy.
func begins(text []byte, with string) bool {
	return len(text) >= len(with) && string(text[:len(with)]) == with
}

// tail returns the offset of a client's text that reaches to the end, or -1.
func tail(text []byte) int {
	for _, t := range harnessTails {
		if i := bytes.Index(text, t); i >= 0 {
			return i
		}
	}
	return -1
}

// origin is the author of a part of a message.
type origin uint8

// The origins of parts.
const (
	byPerson       origin = iota // no client has added to it
	byBoth                       // a client wrote some of it, or may have
	inUnknownFrame               // all of it is quoted, or is in a frame that is not in the table
	byClient                     // a client wrote all of it
)

// wordsIn returns the person's words in a part of a message, and the part's origin. A
// client's frame reaches to the last of its ends: a file in it may hold one, too. The words
// may share memory with text.
func wordsIn(text []byte, in within) ([]byte, origin) {
	text = withoutElement(text, "graphiti_memory") // some clients send our block back
	before := len(text)
	text = WithoutMedia(text)
	media := len(text) < before
	if text = trim(text); len(text) == 0 {
		return nil, byClient
	}
	if words := sentAmid(text); len(words) > 0 {
		if foreign(words) {
			return words, byBoth
		}
		return words, byPerson
	}
	if command := builtIn(text); command != nil {
		return command, byBoth
	}
	left, behind := behindPreface(text)
	if !behind && (isHarness(text, in) || command.Match(text) || !in.early() && isAutomated(text)) {
		return nil, byClient
	}
	if frame, known := framed(text); frame && known && !behind {
		return nil, byClient
	}
	left = withoutClock(left)
	if rest, ok := behindSummary(left, in); ok {
		left = rest
	}
	left, _ = behindPreface(withoutClock(trim(withoutElements(left, in))))
	left, whole := withinElement(left)
	// Only in a paragraph of its own: elsewhere a person may ask about it.
	if i := tail(left); i == 0 || i > 1 && left[i-1] == '\n' && left[i-2] == '\n' {
		left = left[:i]
	}
	left = trim(left)
	frame, _ := framed(left)
	switch {
	case len(left) == 0:
		return nil, byClient
	case len(left) == len(text) && left[0] == '"' && len(Unquoted(string(left))) < len(left) && slices.ContainsFunc(quoters, in.prompted):
		return trim([]byte(Unquoted(string(left)))), byPerson
	case frame && !whole:
		return left, inUnknownFrame
	case len(left) < len(text) && !whole || media || foreign(left):
		return left, byBoth
	}
	return left, byPerson
}

// reported matches a client's report of words that the person sent while the model worked, with
// the client's last paragraph. Claude Code sends it in a reminder, or after the results.
var reported = regexp.MustCompile(`(?s)^(?:<system-reminder>\s*)?The user sent (?:a new|the following) message[^\n]{0,40}:\n(.*?)` +
	`(?:\n\n(?:This is how Claude Code|IMPORTANT: |Please address this message)[^\n]*)?\s*(?:</system-reminder>)?\s*$`)

// sentAmid returns the words in such a report, or nil.
func sentAmid(text []byte) []byte {
	if text = trim(text); !begins(text, "<system-reminder>") && !begins(text, "The user sent") {
		return nil
	}
	if m := reported.FindSubmatch(text); m != nil {
		return trim(m[1])
	}
	return nil
}

// Unquoted returns a text without the quotation marks that enclose all of it, and without the
// escapes of others within.
func Unquoted(text string) string {
	inner, opened := strings.CutPrefix(strings.TrimSpace(text), `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	if !opened || !closed || strings.Contains(strings.ReplaceAll(inner, `\"`, ""), `"`) {
		return text
	}
	return strings.ReplaceAll(inner, `\"`, `"`)
}

// command matches a text that is only a command to the client, not to the model.
var command = regexp.MustCompile(`^/[a-z][a-z0-9:_-]*$`)

// automated matches a first line that ends with a note that the message is automated. Clients
// write such messages about an answer. On a later line, a person may have pasted it.
var automated = regexp.MustCompile(`^[^\n]{0,400}\([Tt]his is (?:an )?automated [^()\n]+\):?\r?(?:\n|$)`)

func isAutomated(text []byte) bool { return mayBeAutomated(text) && automated.Match(text) }

// mayBeAutomated reports whether automated may match. It reads as much as automated does at
// most, and looks for the rarer character first.
func mayBeAutomated(text []byte) bool {
	text = text[:min(len(text), 512)]
	i := bytes.IndexByte(text, '(')
	return i >= 0 && bytes.Contains(text[i:], []byte("utomated "))
}

// framed reports whether a text is in one frame, and whether clients use that frame for
// their own text.
func framed(text []byte) (frame, known bool) {
	if begins(text, "<<<") {
		return bytes.HasSuffix(text, []byte(">>>")), false
	}
	tag := tagAt(text)
	if tag == nil || !bytes.HasSuffix(text, slices.Concat([]byte("</"), tag, []byte(">"))) || slices.ContainsFunc(wordsFrames, func(t string) bool { return string(tag) == t }) {
		return false, false
	}
	return true, harnessTags[string(tag)]
}

// wordsFrames are elements that hold a person's words.
var wordsFrames = slices.Concat(wordsWithin, wordsAround)

// tagAt returns the name of the element at the beginning of a text, or nil.
func tagAt(text []byte) []byte {
	if len(text) == 0 || text[0] != '<' {
		return nil
	}
	return nameAt(text[1:])
}

// nameAt returns the name of the element at the beginning of a text without its "<" or
// "</", or nil.
func nameAt(text []byte) []byte {
	text = text[:min(len(text), maxTag)]
	n := bytes.IndexFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && r != ':' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	if n <= 0 || text[n] != '>' && !isSpace(text[n]) {
		return nil
	}
	return text[:n]
}

// foreign reports whether a line of a text begins like text that people paste or clients
// attach: with a tag, or with the same sign twice, as fences, rules and headings do.
func foreign(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = trim(line)
		if len(line) < 2 {
			continue
		}
		if line[0] == '<' && (line[1] == '/' || line[1] == '!' || line[1] == '?' || tagAt(line) != nil) {
			return true
		}
		if c := line[0]; c == line[1] && bytes.IndexByte(signs, c) >= 0 {
			return true
		}
	}
	return false
}

// isHarness reports whether a client wrote this part of a message.
func isHarness(text []byte, in within) bool {
	for _, m := range harnessTexts[text[0]] {
		if bytes.HasPrefix(text, []byte(m.Start)) && (!m.Whole || len(text) == len(m.Start)) &&
			bytes.Contains(text[len(m.Start):], []byte(m.Then)) && (m.Opens == "" || in.early() && in.prompted(m.Opens)) {
			return true
		}
	}
	return false
}

// isClientsAnswer reports whether a text begins like a client's own answer to a summary
// that it put into a message.
func isClientsAnswer(start []byte) bool {
	return slices.ContainsFunc(ownAnswers, func(s string) bool { return bytes.HasPrefix(start, []byte(s)) })
}

// behindPreface returns a text without a client's preface, and whether there was one.
func behindPreface(text []byte) (words []byte, found bool) {
	for _, p := range harnessPrefaces {
		if !bytes.HasPrefix(text, []byte(p.Start)) {
			continue
		}
		if words, found := behindLine(text, p.End, p.Behind); found {
			return trim(words), true
		}
	}
	return text, false
}

// behindLine returns the text after the last line that equals line or, if ends is set, ends
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

// withinElement returns the person's words from the element into which a client has put
// them. whole reports whether the element is the whole text.
func withinElement(text []byte) (words []byte, whole bool) {
	if len(text) == 0 || text[0] != '<' { // the person only mentions an element
		return text, false
	}
	for _, tag := range wordsWithin {
		open, shut := []byte("<"+tag+">"), []byte("</"+tag+">")
		// The last one counts: an attached file may hold one.
		i := bytes.LastIndex(text, open)
		if i < 0 {
			continue
		}
		rest := text[i+len(open):]
		end := bytes.LastIndex(rest, shut)
		if end < 0 {
			continue
		}
		words, behind := trim(rest[:end]), trim(rest[end+len(shut):])
		if len(behind) == 0 || behind[0] == '<' || bytes.Equal(words, behind) {
			text = words
		}
	}
	for _, tag := range wordsAround {
		inner, opened := bytes.CutPrefix(text, []byte("<"+tag))
		inner, shut := bytes.CutSuffix(inner, []byte("</"+tag+">"))
		if i := bytes.IndexByte(inner, '>'); opened && shut && i >= 0 && (i == 0 || isSpace(inner[0])) {
			text, whole = trim(inner[i+1:]), true
		}
	}
	return text, whole
}

// withoutFiles cuts attached files out of the parts of a message, in place: from the first
// line that begins a file to the last line that ends one, since a file may hold such a line
// itself; without an end, to the end of the message. It reports whether it cut anything.
func withoutFiles(parts [][]byte) (cut bool) {
	for _, f := range harnessFiles {
		from, before := -1, []byte(nil)
		for i, text := range parts {
			b, behind, found := cutLine(text, []byte(f[0]))
			if !found {
				continue
			}
			from, before, parts[i] = i, b, behind
			break
		}
		if from < 0 {
			continue
		}
		cut = true
		to, behind := len(parts), []byte(nil)
		for i := len(parts) - 1; i >= from && to == len(parts); i-- {
			if b, found := behindLine(parts[i], f[1], false); found {
				to, behind = i, b
			}
		}
		for i := from; i < min(to+1, len(parts)); i++ {
			parts[i] = nil
		}
		if to == from {
			parts[from] = append(slices.Clip(before), behind...)
			continue
		}
		if parts[from] = before; to < len(parts) {
			parts[to] = behind
		}
	}
	return cut
}

// cutLine splits a text around the first line that equals line.
func cutLine(text, line []byte) (before, behind []byte, found bool) {
	for at := 0; ; {
		i := bytes.Index(text[at:], line)
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
