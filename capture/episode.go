package capture

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// truncated is in the middle of a text that was cut.
const truncated = "\n…[truncated]\n"

// redactSlack is how many bytes of a text, beyond what can be delivered of it, are
// searched for credentials: our own blocks in it are taken out afterwards. Half of it is
// on either side of where the text is joined, so that no half of a credential stays.
const redactSlack = 64 << 10

// clean removes from a turn what is not recorded: credentials, whoever wrote them, and
// the text beyond what is written to the memory. It cuts texts that are far too long before
// it searches for credentials.
func (p *Pipeline) clean(t *ledger.Turn) {
	maxChars := p.opts().MaxChars
	most := utf8.UTFMax*maxChars + redactSlack
	texts := []*string{&t.User, &t.Assistant, &t.Speaker, &t.Tools, &t.Git.Branch}
	for i := range t.Restored {
		texts = append(texts, &t.Restored[i].Speaker, &t.Restored[i].Source)
	}
	for i, text := range texts {
		if i < 2 {
			*text = string(dialect.WithoutMedia([]byte(*text)))
		}
		if len(*text) > most {
			*text = strings.ToValidUTF8((*text)[:most/2], "") + strings.ToValidUTF8((*text)[len(*text)-most/2:], "")
		}
		clean, n := p.secrets.Redact(*text)
		*text = clean
		p.redacted.Add(int64(n))
	}
	said := texts[:2] // what the person and the model said
	long := func(text *string) bool { return utf8.RuneCountInString(*text) > maxChars }
	if !slices.ContainsFunc(said, long) {
		return
	}
	t.WholeDigest = t.Digest()
	for _, text := range said {
		if long(text) {
			p.shortened.Add(1)
			*text = graphiti.ShortenMiddle(strings.TrimSpace(withoutLikeLines(dropBlocks(*text))), truncated, maxChars)
		}
	}
}

// Redacted returns a text without its credentials.
func (p *Pipeline) Redacted(text string) string {
	text, _ = p.secrets.Redact(text)
	return text
}

// RedactedBy is Redacted with a deadline. If the time is too short, ok is false and
// there is no text.
func (p *Pipeline) RedactedBy(text string, by time.Time) (redacted string, ok bool) {
	redacted, _, ok = p.secrets.RedactBy(text, by)
	return redacted, ok
}

// HoldsSecret reports whether something in a text looks like a credential.
func (p *Pipeline) HoldsSecret(text string) bool {
	_, n := p.secrets.Redact(text)
	return n > 0
}

// messagesOf is a turn as it is written to one group, less what the group has
// already: what the person said, and what was answered.
func messagesOf(t *ledger.Turn, scope graphiti.Scope, have ledger.Sides, maxChars int, now time.Time) []graphiti.Message {
	if len(t.Restored) > 0 {
		return restored(t, have, maxChars, now)
	}
	source := sourceOf(t, scope, 0)
	if t.Kind != "" {
		return curated(t, scope, source, have, maxChars, now)
	}
	answer := dropBlocks(t.Assistant)
	if t.Tools != "" {
		answer = strings.TrimSpace(answer) + "\n(tools used: " + t.Tools + ")"
	}
	var out []graphiti.Message
	for _, m := range []struct {
		side ledger.Sides
		role graphiti.RoleType
		text string
		at   time.Time
	}{{ledger.SideUser, graphiti.RoleUser, dropBlocks(t.User), t.Said}, {ledger.SideAssistant, graphiti.RoleAssistant, answer, t.Answered}} {
		text := graphiti.ShortenMiddle(strings.TrimSpace(m.text), truncated, maxChars)
		if text == "" || have&m.side != 0 {
			continue
		}
		if m.at.After(now) { // Graphiti hides what lies in the future
			m.at = now
		}
		out = append(out, graphiti.Message{
			Name:              graphiti.EpisodeName(t.ID, m.role),
			Role:              t.Speaker,
			RoleType:          m.role,
			Content:           text,
			Timestamp:         m.at.UTC(),
			SourceDescription: source,
		})
	}
	return out
}

// Episodes says how many messages a turn becomes in a memory whose model reads each
// message.
type Episodes string

// The values of Episodes.
const (
	PerTurn    Episodes = "turn"    // both sides in one message: the model is asked once
	PerMessage Episodes = "message" // a message for each side
)

// episodesOf is messagesOf for a memory that reads each message by a model: of a turn in
// which nobody says anything, and of one that only repeats what the memory knows, there is
// none.
func episodesOf(t *ledger.Turn, scope graphiti.Scope, have ledger.Sides, per Episodes, maxChars int, now time.Time) []graphiti.Message {
	turn := t.Kind == "" && len(t.Restored) == 0
	if turn && (t.Known || idle(t)) {
		return nil
	}
	list := messagesOf(t, scope, have, maxChars, now)
	if !turn || per != PerTurn || len(list) != 2 {
		return list
	}
	said, answered := &list[0], &list[1]
	said.SourceDescription = sourceOf(t, scope, len(said.Content))
	said.Content += graphiti.AnswerMark(answered.Role) + answered.Content
	return list[:1]
}

// idle reports whether nobody says anything in a turn: "ok thanks", and a nod. It is
// false for the rest of a turn, in which the person says nothing, because the turn as a
// whole says something; and for the answer to a question of the model's, which may say
// something with any word.
func idle(t *ledger.Turn) bool {
	return t.User != "" && !t.Asked && !words.Tells(t.User) && (words.Nods(t.Assistant) || !words.Tells(t.Assistant))
}

// restored is a turn of an export as it was kept before.
func restored(t *ledger.Turn, have ledger.Sides, maxChars int, now time.Time) (out []graphiti.Message) {
	for _, r := range t.Restored {
		side, text, at := ledger.SideUser, t.User, t.Said
		if r.Role == graphiti.RoleAssistant {
			side, text, at = ledger.SideAssistant, t.Assistant, t.Answered
		}
		if have&side != 0 {
			continue
		}
		if at.After(now) {
			at = now
		}
		out = append(out, graphiti.Message{
			Name: r.Name, Role: r.Speaker, RoleType: r.Role, Content: graphiti.ShortenMiddle(text, truncated, maxChars), Timestamp: at.UTC(), SourceDescription: r.Source,
		})
	}
	return out
}

// curated is a curated text as it is written to one group.
func curated(t *ledger.Turn, scope graphiti.Scope, source string, have ledger.Sides, maxChars int, now time.Time) []graphiti.Message {
	at := t.Said
	if at.After(now) {
		at = now
	}
	text := graphiti.ShortenMiddle(strings.TrimSpace(dropBlocks(t.User)), truncated, maxChars)
	if text == "" || have != 0 {
		return nil
	}
	return []graphiti.Message{{
		Name:              graphiti.EpisodeName(t.ID, graphiti.RoleSystem),
		RoleType:          graphiti.RoleSystem,
		Content:           graphiti.Curated{Kind: t.Kind, Scope: scope, At: at, Text: text}.String(),
		Timestamp:         at.UTC(),
		SourceDescription: source,
	}}
}

// sourceOf says where a turn comes from, as a small JSON object. answer is where the answer
// begins in a message that holds both sides; 0: it holds one. Strings of ours and of
// clients are all it holds, so that it cannot fail.
func sourceOf(t *ledger.Turn, scope graphiti.Scope, answer int) string {
	b, _ := json.Marshal(struct {
		Source  string         `json:"source"`
		Scope   graphiti.Scope `json:"scope"`
		Client  string         `json:"client,omitempty"`
		Session string         `json:"session,omitempty"`
		Git     ledger.Git     `json:"git,omitzero"`
		Answer  int            `json:"answer,omitempty"`
	}{"graphiti-proxy", scope, t.Client, t.OfSession(), t.Git, answer})
	return string(b)
}

// dropBlocks takes out our own blocks, also when the model quotes one: a
// memory must not feed on itself. One that is not closed goes on to the end.
func dropBlocks(s string) string {
	s, _ = dialect.CutElements(s, "<graphiti_memory>", "</graphiti_memory>")
	return s
}
