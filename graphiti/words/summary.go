package words

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Summary has the points of a client's summary of a conversation, in the client's words.
type Summary struct {
	About   string
	Decided []string
	Open    []string
	Done    []string
}

// part is a kind of section.
type part int

const (
	partOther part = iota
	partOpen
	partNow // open in a list; prose reports finished work
	partDecided
	partDone
	partAbout
)

// partStems are the beginnings of the words in the headings of each part, from the formats that
// clients ask for. The first part that fits a heading counts.
var partStems = []struct {
	part  part
	stems []string
}{
	{partOpen, []string{"next", "pending", "todo", "to-do", "remain", "blocked", "plan", "open", "left", "unfinished", "in progress"}},
	{partNow, []string{"active", "current"}},
	{partOther, []string{"error", "fix", "problem", "file", "artifact"}},
	{partDecided, []string{"decision", "detail", "constraint", "preference", "knowledge", "important", "critical"}},
	{partDone, []string{"done", "complet", "state", "progress", "history"}},
	{partAbout, []string{"goal", "objective", "intent", "request", "task", "context", "overview", "summary"}},
}

var (
	heading  = regexp.MustCompile(`^[#*\s\d.)<>/_-]*([^:*#<>\n]{3,60}?)[*:>\s]*(:|$|\*\*)\s*(.*)$`)
	numbered = regexp.MustCompile(`^\d+[.)]\s+\S[^:]{2,60}:$`)
	bullet   = regexp.MustCompile(`^\s*([-*•]|\d+[.)])\s+`)
	checkbox = regexp.MustCompile(`^\[( |x|X|DONE|TODO|IN PROGRESS)\]\s*`)

	// none matches the content of an empty list, such as "none" or "no pending tasks".
	none = regexp.MustCompile(`(?i)^(\(?none\)?|nothing|n/a|-|no (pending|open|remaining|further) .*)[.!]?$`)
)

// maxPoints bounds the points of a list.
const maxPoints = 16

// ReadSummary finds the points of a summary by its headings and check boxes.
func ReadSummary(text string) (s Summary) {
	in, prose := partOther, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		isPoint := bullet.MatchString(line) && !numbered.MatchString(line)
		if m := heading.FindStringSubmatch(line); m != nil && !isPoint {
			isHeading := slices.ContainsFunc([]string{"#", "**", "<"}, func(mark string) bool { return strings.HasPrefix(line, mark) }) || strings.HasSuffix(line, ":")
			if p := partOf(m[1]); p != partOther && m[2] == ":" || isHeading {
				in, prose, line = p, 0, m[3]
			}
		}
		line = strings.TrimSpace(strings.ReplaceAll(bullet.ReplaceAllString(line, ""), "**", ""))
		to := in
		if m := checkbox.FindStringSubmatch(line); m != nil {
			line, to = line[len(m[0]):], partDone
			if m[1] != "DONE" && !strings.EqualFold(m[1], "x") {
				to = partOpen
			}
		}
		if line == "" || none.MatchString(line) || !isPoint && (prose > 0 || to == partNow) {
			continue
		}
		if !isPoint {
			prose++ // of prose, the first line
		}
		s.add(to, line)
	}
	return s
}

func (s *Summary) add(to part, line string) {
	list := map[part]*[]string{partOpen: &s.Open, partNow: &s.Open, partDecided: &s.Decided, partDone: &s.Done}[to]
	switch {
	case to == partAbout && s.About == "":
		s.About = line
	case list != nil && len(*list) < maxPoints && !slices.Contains(*list, line):
		*list = append(*list, line)
	}
}

// partOf returns the part with this heading.
func partOf(name string) part {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, p := range partStems {
		for _, stem := range p.stems {
			if i := strings.Index(name, stem); i >= 0 && (i == 0 || !unicode.IsLetter(rune(name[i-1]))) {
				return p.part
			}
		}
	}
	return partOther
}
