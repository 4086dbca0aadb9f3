package inject

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// maxChars is the maximum length of a fact's line.
const maxChars = 500

// betweenLines separates statements that share a row.
const betweenLines = " · "

// quoted returns a line as a quotation, which it cannot close.
func quoted(line string) string {
	return "“" + unquoted.Replace(strings.Trim(line, "“”\"")) + "”"
}

var unquoted = strings.NewReplacer("“", "‘", "”", "’")

// lineOf renders an untrusted fact as one line. The result has no line breaks, tags or
// invisible characters except joins. Angle brackets become single guillemets, because models
// take escaped brackets for real ones.
func lineOf(text string) string {
	var b strings.Builder
	n, gap := 0, false
	for i, r := range text {
		switch {
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			gap = b.Len() > 0
			continue
		case r == '<' || r == '\uff1c' || r == '\ufe64':
			r = '‹'
		case r == '>' || r == '\uff1e' || r == '\ufe65':
			r = '›'
		case !visible(r) && !words.Joins(text, i):
			continue
		}
		if n++; n > maxChars {
			b.WriteString("…")
			break
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// visible reports whether a character is visible. Controls, escapes, direction marks, tag
// characters, variation selectors, ignorable characters and noncharacters are not. Even
// emoji variation selectors are excluded: after most symbols they are invisible, and could
// smuggle text to a model bit by bit.
func visible(r rune) bool {
	if ' ' <= r && r < unicode.MaxASCII {
		return true
	}
	return r != utf8.RuneError && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

var unjoined = strings.NewReplacer("\u200c", "", "\u200d", "") // for comparisons: other texts may lack joiners

// dated matches the end of a line's label.
var dated = regexp.MustCompile(`^, \d{4}-\d\d-\d\d$`)

// maxSpeaker is the most characters of the speaker in a label.
const maxSpeaker = 120

// lineLabel returns the speaker and date at the start of a line, or "".
func lineLabel(line string) string {
	end := strings.IndexByte(line, ':')
	at := end - len(", 2006-01-02")
	if at < 1 || !strings.HasPrefix(line[end:], ": ") || !dated.MatchString(line[at:end]) || utf8.RuneCountInString(line[:at]) > maxSpeaker {
		return ""
	}
	return line[:end+len(": ")]
}

// lineHead returns the speaker and date that a line can share with others. It returns ""
// for a line without them, and for one that contains the separator.
func lineHead(line, source string) string {
	if source == "" || strings.Contains(line, betweenLines) {
		return ""
	}
	if head := lineOf(source) + ": "; strings.HasPrefix(line, head) {
		return head
	}
	return ""
}

// lineSize returns the number of characters that a line adds to a block. With shared, it
// joins a row with the same head.
func lineSize(line, head string, shared bool) int {
	if !shared {
		return utf8.RuneCountInString(line) + len("- \n")
	}
	return utf8.RuneCountInString(line[len(head):]) + utf8.RuneCountInString(betweenLines)
}

// joinLines merges lines with the same head into rows. rows has the 1-based row of each
// line.
func joinLines(lines, heads []string) (out []string, rows []int) {
	first := make(map[string]int)
	rows = make([]int, len(lines))
	for i, l := range lines {
		head := heads[i]
		if at, ok := first[head]; ok && head != "" {
			out[at] += betweenLines + l[len(head):]
			rows[i] = at + 1
			continue
		}
		first[head] = len(out)
		out = append(out, l)
		rows[i] = len(out)
	}
	return out, rows
}

// ageOf returns the end of a line that when added, or "".
func ageOf(line string) string {
	i := strings.LastIndex(line, " (")
	if i <= 0 || strings.IndexByte(line[i:], ')') != len(line)-i-1 { // it does not end the line
		return ""
	}
	if strings.HasPrefix(line[i:], " (since ") || strings.HasPrefix(line[i:], " ("+personalMark) || strings.HasSuffix(line, " days old)") {
		return line[i:]
	}
	return ""
}

// statements is a set of statements, from stated.
type statements map[string]struct{}

// statementsIn returns the statements of the lines in blocks. It splits shared rows.
func statementsIn(blocks []string) statements {
	all := make(statements)
	for _, b := range blocks {
		for l := range linesOf(b) {
			all.add(l)
			if head, said, ok := strings.Cut(l, ": "); ok && strings.Contains(said, betweenLines) {
				for s := range strings.SplitSeq(said, betweenLines) {
					all.add(head + ": " + s)
				}
			}
		}
	}
	return all
}

func (s statements) add(line string) { s[line], s[stated(line)] = struct{}{}, struct{}{} }

// shows reports whether a whole line was added.
func (s statements) shows(line string) bool {
	_, ok := s[line]
	return ok
}

func (s statements) has(line string) bool {
	_, ok := s[stated(line)]
	return ok
}

// stated returns a line's statement as other lines may repeat it: in lower case, without its marks and
// joiners.
func stated(line string) string {
	return strings.ToLower(unjoined.Replace(strings.Trim(statement(line), " .!“”\"")))
}
