package inject

import (
	"slices"
	"strings"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// isOwn reports whether the conversation has the messages of a fact.
func (ch *chooser) isOwn(f *graphiti.Fact) bool {
	has := func(episode string) bool {
		_, own := ch.ownTurns[episode]
		return own && episode != ""
	}
	if len(f.Messages) == 0 {
		return has(f.Episode)
	}
	return !slices.ContainsFunc(f.Messages, func(m string) bool { return !has(m) })
}

// inHistory rejects facts that quote an earlier message of the conversation. The names of
// imported turns differ from those of the same turns in the history.
func (ch *chooser) inHistory(all []Candidate) {
	if ch.history == nil {
		return
	}
	said := sync.OnceValue(func() []string { return saidBefore(ch.history) })
	for i := range all {
		f := all[i].Fact
		quote, ok := strings.CutPrefix(f.Text, f.Said+": ")
		if all[i].Verdict == Shown && f.Said != "" && ok && slices.ContainsFunc(said(), func(text string) bool { return quotes(quote, text) }) {
			all[i].Verdict = OwnWords
		}
	}
}

// saidBefore returns the texts of the messages before the newest one of a person, each in one
// line.
func saidBefore(c *dialect.Conversation) (texts []string) {
	size := 0
	for i := c.Last - 1; i >= 0 && size < comparedMax; i-- {
		if m := &c.Messages[i]; m.Person || m.Role == dialect.RoleAssistant {
			text := strings.Join(strings.Fields(string(c.Text(i))), " ")
			texts, size = append(texts, text), size+len(text)
		}
	}
	return texts
}

// quotes reports whether a quotation is a text, or a part of it between ellipses.
func quotes(quote, text string) bool {
	part := strings.Trim(quote, "…")
	return quote == text || part != "" && part != quote && strings.Contains(text, part)
}
