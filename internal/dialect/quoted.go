package dialect

import (
	"bytes"
	"regexp"
	"slices"
	"unicode/utf8"
)

// Applications put documents, results of tools and files into one text with a person's
// question. No table can list their templates, but a template has a form: it labels the
// question, or frames the quotations. ownWords relies on that form alone, so it works in
// any language:
//   - A question that ends a line after a label ("Question: Which port?") is the person's
//     whole message, in any position.
//   - Otherwise the quotations are the lines from the first frame to the last (an element,
//     a titled rule, a bracketed line), the lines that begin with ">", and the lines after
//     a line that ends with the name of a file or an address, up to a closing question.
//   - A text that ends with an empty label ("Answer:") is a form for the model, and so is a
//     text that begins with a label in double brackets ("[[ ## question ## ]]").
//
// Plain text around pasted lines stays, above and below. Pasted lines without a frame stay
// too: a log is worth finding again, and has no form that distinguishes it from words.

// A line is one line of a text.
type line struct {
	text  []byte // trimmed
	at    int    // its offset
	frame bool   // it begins or ends a frame
	opens bool   // it begins a paragraph, or follows a fence
}

const (
	maxLabel = 40   // bytes
	maxLines = 4096 // the rest of a longer text is left out along with any quotation
)

// ownWords returns the words of a person in a text that may quote others, and reports
// whether it left anything out. It returns nil if the text has no words of a person.
func ownWords(text []byte) (words []byte, quotes bool) {
	if bytes.IndexByte(text, '\n') < 0 || !mayQuote(text) {
		return text, false
	}
	lines := linesOf(text)
	if len(lines) < 2 {
		return text, false
	}
	if isField(lines[0].text) {
		if asks(lines[1].text) {
			return lines[1].text, true
		}
		return nil, true
	}
	labels, asked, ended := labelled(lines)
	switch {
	case asked != nil:
		return asked, true
	case ended && labels > 1:
		return nil, true
	}
	kept := slices.Clone(lines)
	kept = slices.DeleteFunc(kept, func(l line) bool { return l.text[0] == '>' && !begins(l.text, ">>>") })
	kept = withoutFrames(kept)
	kept = withoutNamedFile(kept)
	if len(kept) == len(lines) {
		return text, false
	}
	var out []byte
	for _, l := range kept {
		end := l.at + len(l.text)
		out = append(append(out, text[l.at:end]...), '\n')
	}
	return trim(out), true
}

// mayQuote reports whether a line begins or ends like one that ownWords may leave out.
func mayQuote(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = trim(line); len(line) == 0 {
			continue
		}
		if first, last := line[0], line[len(line)-1]; quoting[first] || closing[last] || bytes.IndexByte(line[max(0, len(line)-1-maxExtension):len(line)-1], '.') >= 0 {
			return true
		}
	}
	return false
}

// quoting holds the first bytes of such lines, and closing the last: the last bytes of "：", "？" and "؟"
// among them.
var quoting, closing = bytesOf("<`~-=#*[>"), bytesOf(":?\x9a\x9f")

func bytesOf(chars string) (in [256]bool) {
	for _, c := range []byte(chars) {
		in[c] = true
	}
	return in
}

// linesOf returns the lines of a text that are not blank.
func linesOf(text []byte) (lines []line) {
	opens := true
	for at := 0; at < len(text) && len(lines) < maxLines; {
		end := indexFrom(text, []byte{'\n'}, at)
		from := at
		for from < end && isSpace(text[from]) {
			from++
		}
		if t := trim(text[from:end]); len(t) > 0 {
			lines = append(lines, line{text: t, at: from, frame: isFrame(t), opens: opens})
			opens = isFence(t)
		} else {
			opens = true
		}
		at = end + 1
	}
	return lines
}

// isFrame reports whether a line begins or ends a frame: an element, a rule with a title,
// or a label in brackets. Fences are no frames: people write them, too, and ask about the
// text in them.
func isFrame(l []byte) bool {
	switch l[0] {
	case '<':
		return len(l) > 1 && (l[1] == '/' || l[1] == '!' || l[1] == '<' || tagAt(l) != nil)
	case '-':
		return begins(l, "--- ") && bytes.HasSuffix(l, []byte(" ---"))
	case '[':
		return bytes.IndexByte(l, ']') > 1 && (endsWith(l, ":：") || l[len(l)-1] == ']' && (l[1] == '/' || bytes.IndexByte(l, ':') > 0))
	}
	return false
}

// field matches the label of a field of a form for a model. A test of a shell has signs.
var field = regexp.MustCompile(`^\[\[ #* ?[\p{L}\d_ ]+#* \]\]$`)

// isField reports whether a line is the label of a field.
func isField(l []byte) bool { return begins(l, "[[") && field.Match(l) }

// labelled counts the labels that begin lines, and returns the question after one of them.
// If there are several questions, the one below all labels counts, else the first. ended
// reports whether the text ends with an empty label.
func labelled(lines []line) (labels int, asked []byte, ended bool) {
	for n, l := range lines {
		behind, ok := behindLabel(l.text)
		if ended = ok && len(behind) == 0; !ok {
			continue
		}
		labels++
		next, alone := lines[n+1:], ended && n+1 < len(lines) && len(lines) > 2
		if alone {
			behind, next = next[0].text, next[1:]
		}
		below := !slices.ContainsFunc(next, func(l line) bool { return !endsWith(l.text, ":：") })
		if asks(behind) && (below || asked == nil && !alone) {
			asked = behind
		}
	}
	return labels, asked, ended
}

// behindLabel returns the text after the label of a line: a few words before a colon.
func behindLabel(l []byte) (behind []byte, ok bool) {
	start := l[:min(len(l), maxLabel)]
	i, n := bytes.IndexByte(start, ':'), 1
	if wide := bytes.Index(start, []byte("：")); wide >= 0 && (i < 0 || wide < i) {
		i, n = wide, len("：")
	}
	if i <= 0 || bytes.ContainsAny(start[:i], ".?!/\"'`<>()[]{}=;") || n == 1 && len(l) > i+1 && !isSpace(l[i+1]) {
		return nil, false
	}
	return trim(l[i+n:]), true
}

// asks reports whether a line is a question.
func asks(l []byte) bool { return endsWith(bytes.TrimRight(l, "\"'”»)"), "?？؟") }

// endsWith reports whether a text ends with one of some characters.
func endsWith(text []byte, chars string) bool {
	r, _ := utf8.DecodeLastRune(text)
	return len(text) > 0 && bytes.ContainsRune([]byte(chars), r)
}

// withoutFrames removes all lines from the first line of a frame to the last, and a line
// below others that introduces them. A single line frames nothing.
func withoutFrames(lines []line) []line {
	first := slices.IndexFunc(lines, func(l line) bool { return l.frame })
	if first < 0 {
		return lines
	}
	last := len(lines) - 1
	for !lines[last].frame {
		last--
	}
	if first == last {
		return lines
	}
	if first > 1 && endsWith(lines[first-1].text, ":：") {
		first--
	}
	return slices.Delete(lines, first, last+1)
}

// minNamed is the minimum number of lines of a file after its name: a person, too, may end
// a line with the name of a file.
const minNamed = 3

// withoutNamedFile removes a line that ends with the name of a file or an address, and the
// lines after it, up to a question that ends the text.
func withoutNamedFile(lines []line) []line {
	first := slices.IndexFunc(lines, func(l line) bool { return l.opens && namesFile(l.text) })
	if first < 0 || first+1 < len(lines) && namesFile(lines[first+1].text) && !isFence(lines[first+1].text) { // a list
		return lines
	}
	end := len(lines)
	switch fence := lastFence(lines, first-1); {
	case fence >= 0:
		end = fence + 1
	case asks(lines[end-1].text):
		end--
	}
	if end-first <= minNamed {
		return lines
	}
	return slices.Delete(lines, first, end)
}

// lastFence returns the index of the last line that is a fence, or -1 if no fence opens in
// the three lines from a line on.
func lastFence(lines []line, from int) int {
	fence := func(l line) bool { return isFence(l.text) }
	if near := lines[max(from, 0):]; !slices.ContainsFunc(near[:min(len(near), 3)], fence) {
		return -1
	}
	for n := len(lines) - 1; ; n-- {
		if fence(lines[n]) {
			return n
		}
	}
}

func isFence(l []byte) bool { return begins(l, "```") || begins(l, "~~~") }

// namesFile reports whether a line ends with the name of a file or an address.
func namesFile(l []byte) bool {
	if begins(l, "--- ") || begins(l, "+++ ") { // of a patch
		return false
	}
	l = bytes.TrimRight(l, ":：\"'`")
	word := l[bytes.LastIndexAny(l, " \t\"'`")+1:]
	if bytes.Contains(word, []byte("://")) {
		return true
	}
	dot := bytes.LastIndexByte(word, '.')
	ext := len(word) - dot - 1
	return dot > 0 && ext > 0 && ext <= maxExtension && nameAt(append(slices.Clone(word[dot+1:]), '>')) != nil
}

const maxExtension = 4 // bytes
