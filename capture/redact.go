package capture

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// redactSlack is what is kept of a text, in bytes, beyond what can be delivered
// of it: our own blocks are taken out of it later.
const redactSlack = 64 << 10

// redact takes credentials out of what was said, and of all else that somebody
// wrote, before it is anywhere. What is too long to be delivered goes first.
func (p *Pipeline) redact(t *ledger.Turn) {
	most := utf8.UTFMax*p.opts().MaxChars + redactSlack
	texts := []*string{&t.User, &t.Assistant, &t.Speaker, &t.Tools, &t.Git.Branch}
	for i := range t.Restored {
		texts = append(texts, &t.Restored[i].Speaker, &t.Restored[i].Source)
	}
	for _, text := range texts {
		if len(*text) > most {
			*text = strings.ToValidUTF8((*text)[:most], "")
		}
		clean, n := p.secrets.Redact(*text)
		*text = clean
		p.redacted.Add(int64(n))
	}
}

// Redacted is a text with credentials taken out of it.
func (p *Pipeline) Redacted(text string) string {
	text, _ = p.secrets.Redact(text)
	return text
}

// RedactedBy is Redacted with a deadline. ok is false where the time was not enough:
// then there is no text.
func (p *Pipeline) RedactedBy(text string, by time.Time) (redacted string, ok bool) {
	redacted, _, ok = p.secrets.RedactBy(text, by)
	return redacted, ok
}

// HoldsSecret reports whether a text looks like it holds a credential.
func (p *Pipeline) HoldsSecret(text string) bool {
	_, n := p.secrets.Redact(text)
	return n > 0
}
