package inject

import (
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// chooser decides which of the facts found are worth showing.
type chooser struct {
	now        time.Time
	staleAfter time.Duration
	ownTurns   map[string]struct{} // episodes that the conversation itself shows
	blocks     []string            // what earlier blocks of the conversation show
}

// choose returns the lines to show, best first: scopes in the order given,
// what is not valid now left out, nothing twice, nothing that the conversation
// still shows.
func (ch *chooser) choose(scopes [][]graphiti.Fact) []string {
	var lines []string
	seen := make(map[string]struct{})
	for _, facts := range scopes {
		for i := range facts {
			f := &facts[i]
			if !ch.valid(f) {
				continue
			}
			if _, own := ch.ownTurns[f.Episode]; own && f.Episode != "" {
				continue
			}
			line := factLine(f.Text)
			if line == "" || ch.shown(line) || repeated(seen, f.UUID, line) {
				continue
			}
			lines = append(lines, line+ch.age(f))
		}
	}
	return lines
}

func (ch *chooser) valid(f *graphiti.Fact) bool {
	over := func(t time.Time) bool { return !t.IsZero() && !t.After(ch.now) }
	return !over(f.ExpiredAt) && !over(f.InvalidAt) && !f.ValidAt.After(ch.now)
}

func (ch *chooser) shown(line string) bool {
	for _, b := range ch.blocks {
		if strings.Contains(b, "\n- "+line) {
			return true
		}
	}
	return false
}

// repeated reports whether a fact was there already, by id or by its words.
func repeated(seen map[string]struct{}, uuid, line string) bool {
	words := strings.ToLower(strings.TrimRight(line, ".!… "))
	_, byWords := seen[words]
	_, byID := seen["id "+uuid]
	if uuid != "" {
		seen["id "+uuid] = struct{}{}
	}
	seen[words] = struct{}{}
	return byWords || byID && uuid != ""
}

// age marks a fact that has not been heard of for long.
func (ch *chooser) age(f *graphiti.Fact) string {
	if f.Dated {
		return ""
	}
	t := f.ValidAt
	if t.IsZero() {
		t = f.CreatedAt
	}
	if t.IsZero() || ch.staleAfter <= 0 || ch.now.Sub(t) < ch.staleAfter {
		return ""
	}
	return fmt.Sprintf(" (%d days old)", int(ch.now.Sub(t)/(24*time.Hour)))
}
