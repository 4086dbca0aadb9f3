package graphiti

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Side is one speaker's part of an episode.
type Side struct {
	Name    string // episode name, or the name of this side as a separate episode
	Speaker string
	Role    RoleType // "" unless the episode is a message
	Text    string
}

// AnswerMark returns the text before the answer in an episode with both sides of a turn, in
// Graphiti's format.
func AnswerMark(speaker string) string { return "\n" + speaker + "(" + string(RoleAssistant) + "): " }

// Sides parses an episode of one message, "speaker(role): text", or of a turn with both sides.
// The description holds the offset of the answer, because the text may contain false marks.
func (e *Episode) Sides() []Side {
	s := Side{Name: e.Name}
	s.Speaker, s.Role, s.Text = spoken(e.Content)
	at := int(gjson.Get(e.SourceDescription, "answer").Int())
	turn, ours := TurnOf(e.Name)
	if at <= 0 || at >= len(s.Text) || !utf8.RuneStart(s.Text[at]) || !ours || s.Role != RoleUser {
		return []Side{s}
	}
	answer, marked := strings.CutPrefix(s.Text[at:], AnswerMark(s.Speaker))
	if !marked {
		return []Side{s}
	}
	s.Text = s.Text[:at]
	return []Side{s, {Name: EpisodeName(turn, RoleAssistant), Speaker: s.Speaker, Role: RoleAssistant, Text: answer}}
}

// spoken parses Graphiti's stored text of a message.
func spoken(content string) (speaker string, role RoleType, text string) {
	for at := 0; ; {
		i := strings.Index(content[at:], "): ")
		if i < 0 {
			return "", "", content
		}
		head := content[:at+i]
		at += i + len("): ")
		for _, r := range []RoleType{RoleUser, RoleAssistant, RoleSystem} {
			if name, ok := strings.CutSuffix(head, "("+string(r)); ok && !strings.Contains(name, "\n") {
				return name, r, content[at:]
			}
		}
	}
}
