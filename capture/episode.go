package capture

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/redact"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// truncated replaces the middle of a shortened text.
const truncated = "\n…[truncated]\n"

// redactSlack is how many bytes beyond the deliverable size are searched for credentials,
// because memory blocks are removed only afterwards. Half of it is on either side of the
// joint, so that no half of a credential remains.
const redactSlack = 64 << 10

// clean removes credentials of either side from a turn, and the text beyond the delivery
// limit. It truncates very long texts before the search for credentials.
func (p *Pipeline) clean(t *ledger.Turn) {
	maxChars := p.opts().MaxChars
	most := utf8.UTFMax*maxChars + redactSlack
	texts := []*string{&t.User, &t.Assistant, &t.Speaker, &t.Git.Branch}
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
		clean, n := redact.Redact(*text)
		*text = clean
		p.redacted.Add(int64(n))
	}
	said := texts[:2] // the texts of the person and the model
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
	text, _ = redact.Redact(text)
	return text
}

// RedactedBy is Redacted with a deadline. At the deadline it returns ok false and no text.
func (p *Pipeline) RedactedBy(text string, by time.Time) (redacted string, ok bool) {
	redacted, _, ok = redact.RedactBy(text, by)
	return redacted, ok
}

// HoldsSecret reports whether a text contains a likely credential.
func (p *Pipeline) HoldsSecret(text string) bool {
	_, n := redact.Redact(text)
	return n > 0
}

// messagesOf returns the messages of a turn for one group.
func messagesOf(t *ledger.Turn, scope graphiti.Scope, maxChars int, now time.Time) []graphiti.Row {
	if len(t.Restored) > 0 {
		return restored(t, maxChars, now)
	}
	source := sourceOf(t, scope)
	if t.Kind != "" {
		return curated(t, scope, source, maxChars, now)
	}
	var out []graphiti.Row
	for _, m := range []struct {
		role graphiti.RoleType
		text string
		at   time.Time
	}{{graphiti.RoleUser, dropBlocks(t.User), t.Said}, {graphiti.RoleAssistant, dropBlocks(t.Assistant), t.Answered}} {
		text := graphiti.ShortenMiddle(strings.TrimSpace(m.text), truncated, maxChars)
		if text == "" {
			continue
		}
		if m.at.After(now) { // Graphiti hides messages from the future
			m.at = now
		}
		out = append(out, graphiti.Row{
			Name:    graphiti.EpisodeName(t.ID, m.role),
			Speaker: t.Speaker,
			Role:    m.role,
			Text:    text,
			Said:    m.at.UTC(),
			Source:  source,
		})
	}
	if len(t.Work) > 0 && len(out) > 0 && (scope == graphiti.ScopeWorkspace || scope == graphiti.ScopeSession) {
		out = append(out, curatedRow(t, graphiti.KindWork, strings.Join(t.Work, graphiti.BetweenWork), out[len(out)-1].Said, scope, source))
		out[len(out)-1].Name = graphiti.EpisodeName(t.ID, graphiti.KindWork)
	}
	return out
}

// Episodes is the number of messages per turn for a memory that reads each message with a
// model.
type Episodes string

// The values of Episodes.
const (
	PerTurn    Episodes = "turn"    // both sides in one message: one call of the model
	PerMessage Episodes = "message" // one message for each side
)

// worthCopy reports whether a memory that reads each message with a model should get a turn: it has
// content, and does not only repeat known facts.
func worthCopy(t *ledger.Turn) bool {
	return t.Kind != "" || len(t.Restored) > 0 || !t.Known && !idle(t)
}

// episodesOf returns the messages of turns for a memory that reads each message with a model.
func episodesOf(list []graphiti.Row, per Episodes) []graphiti.Row {
	if per != PerTurn || len(list) < 2 || list[0].Role != graphiti.RoleUser {
		return list
	}
	if one, ok := graphiti.Join(list); ok {
		return []graphiti.Row{one}
	}
	return list
}

// idle reports whether a turn has no content, such as "ok thanks" and a nod. It is false
// for the rest of a turn, which has no message of the person, because the whole turn may
// have content. It is also false for the reply to a question, where any word may matter.
func idle(t *ledger.Turn) bool {
	return t.User != "" && !t.Asked && !words.Tells(t.User) && (words.Nods(t.Assistant) || !words.Tells(t.Assistant))
}

// restored returns the messages of an exported turn in their stored form.
func restored(t *ledger.Turn, maxChars int, now time.Time) (out []graphiti.Row) {
	for _, r := range t.Restored {
		text, at := t.User, t.Said
		if r.Role == graphiti.RoleAssistant {
			text, at = t.Assistant, t.Answered
		}
		if at.After(now) {
			at = now
		}
		if t.Import != "" {
			r.Source = markImport(r.Source, t.Import)
		}
		out = append(out, graphiti.Row{
			Name: r.Name, Speaker: r.Speaker, Role: r.Role, Text: graphiti.ShortenMiddle(text, truncated, maxChars), Said: at.UTC(), Source: r.Source,
		})
	}
	return out
}

// markImport sets the import of a source description.
func markImport(source, name string) string {
	if old := gjson.Get(source, "import"); old.Exists() {
		return strings.Replace(source, `"import":`+old.Raw, `"import":"`+name+`"`, 1)
	}
	if rest, ok := strings.CutSuffix(source, "}"); ok && rest != "{" {
		return rest + `,"import":"` + name + `"}`
	}
	return `{"import":"` + name + `"}`
}

// curated returns the message of a curated text for one group.
func curated(t *ledger.Turn, scope graphiti.Scope, source string, maxChars int, now time.Time) []graphiti.Row {
	at := t.Said
	if at.After(now) {
		at = now
	}
	text := graphiti.ShortenMiddle(strings.TrimSpace(dropBlocks(t.User)), truncated, maxChars)
	if text == "" {
		return nil
	}
	return []graphiti.Row{curatedRow(t, t.Kind, text, at, scope, source)}
}

func curatedRow(t *ledger.Turn, kind, text string, at time.Time, scope graphiti.Scope, source string) graphiti.Row {
	return graphiti.Row{
		Name:   graphiti.EpisodeName(t.ID, graphiti.RoleSystem),
		Role:   graphiti.RoleSystem,
		Text:   graphiti.Curated{Kind: kind, Scope: scope, At: at, Text: text}.String(),
		Said:   at.UTC(),
		Source: source,
	}
}

// sourceOf returns the source description of a turn, a small JSON object. All values are plain
// strings, so encoding cannot fail.
func sourceOf(t *ledger.Turn, scope graphiti.Scope) string {
	b, _ := json.Marshal(struct {
		Source  string         `json:"source"`
		Scope   graphiti.Scope `json:"scope"`
		Client  string         `json:"client,omitempty"`
		Place   string         `json:"place,omitempty"`
		Session string         `json:"session,omitempty"`
		Repo    string         `json:"repository,omitempty"`
		Import  string         `json:"import,omitempty"`
		Git     ledger.Git     `json:"git,omitzero"`
		Serves  string         `json:"provider,omitempty"`
		Model   string         `json:"model,omitempty"`
	}{"graphiti-proxy", scope, t.Client, t.Place, t.OfSession(), graphiti.RepositoryName(t.Workspace), t.Import, t.Git, t.Provider, t.Model})
	return string(b)
}

// dropBlocks removes memory blocks, even if the model quotes one, so that a memory never
// feeds on itself. An unclosed block extends to the end.
func dropBlocks(s string) string {
	s, _, _ = strings.Cut(dialect.WithoutElement(s, "graphiti_memory"), "<graphiti_memory>")
	return s
}
