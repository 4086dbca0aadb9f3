package graphiti

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Side is what one speaker said, as an episode holds it.
type Side struct {
	Name    string // of the episode, or the one that this side would have in an episode of its own
	Speaker string
	Role    RoleType // empty for an episode that is not a message
	Text    string
}

// AnswerMark stands before the answer in an episode that holds both sides of a turn, as
// Graphiti itself writes who speaks.
func AnswerMark(speaker string) string { return "\n" + speaker + "(" + string(RoleAssistant) + "): " }

// Sides takes apart what Graphiti keeps of a message, "speaker(role): text", and of a turn
// whose sides are in one episode. Where the answer begins stands in the episode's
// description, because the text itself may look like another speaker's.
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

// spoken takes apart the text that Graphiti stores of a message.
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
