package proxy

import (
	"context"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// remember stores the fingerprints of the session after this turn, in one write.
func (p *pendingTurn) remember(a dialect.Answer) {
	var by [][16]byte
	if len(a.Text) >= dialect.Telling {
		// A request may contain the session as a transcript, or a summary in place of its
		// messages. Some clients send the summary as a message of the model.
		by = append(by, p.at.person.OfAnswer([]byte(dialect.SummaryIn(a.Text))))
		if p.chained || p.turn.Kind != "" {
			by = append(by, p.at.here.Link(dialect.RoleAssistant, []byte(a.Text)))
		}
	}
	if !p.chained {
		for _, f := range by {
			p.memory.Sessions.PutAsync(f, p.own)
		}
		return
	}
	if err := p.memory.Sessions.Put(context.Background(), p.own, p.chain(a, by)...); err != nil {
		p.s.log.Warn("store session failed", "error", err)
	}
	p.memory.Sessions.EndPending(p.why.With)
}

// chain adds the fingerprints that the beginning of the next request may have.
func (p *pendingTurn) chain(a dialect.Answer, by [][16]byte) [][16]byte {
	for _, id := range []string{a.ID, a.Item} { // the next request may contain only a reference to this answer
		if id == "" {
			continue
		}
		by = append(by, p.at.here.Reference(id))
		if p.at.here != p.at.base { // it may not state its place
			by = append(by, p.at.base.Reference(id))
		}
	}
	by = append(by, askedIn(p.why.With))
	if a.Text == "" {
		return append(by, p.end)
	}
	rest := a.Text
	if p.prefill != "" { // the client may join the prefill and the answer, or not
		by = append(by, p.before.Link(dialect.RoleAssistant, []byte(a.Text)))
		rest = strings.TrimPrefix(rest, p.prefill)
	}
	return append(by, p.end.Link(dialect.RoleAssistant, []byte(rest)))
}

// orderOf returns a number for a conversation, or 0 without a session. Answers with the same number
// are reported in their order.
func orderOf(session string) uint64 {
	if session == "" {
		return 0
	}
	return xxhash.Sum64String(session)
}
