package dialect

import (
	"bytes"
	"slices"
)

// Kind says what a request is for.
type Kind uint8

// The kinds of requests. All but KindTurn are forwarded without new recall
// and are not kept.
const (
	KindTurn    Kind = iota // a person's turn, or a tool round of one
	KindTitle               // a title, tags or follow-ups are asked for
	KindSummary             // the client compacts its history
	KindProbe               // quota, topic, autocompletion, choice of tools
	KindMachine             // no person wrote the newest user message
)

// chores are those of all clients. The first that matches counts.
var chores = func() (all []chore) {
	for _, cl := range clients {
		for _, ch := range cl.chores {
			ch.client, ch.within, ch.after = cl.name, []byte(ch.inside), []byte(ch.then)
			all = append(all, ch)
		}
	}
	return all
}()

// asking are the chores that a message alone tells, by the byte that it begins
// with.
var asking = func() (by [256][]*chore) {
	for i := range chores {
		if ch := &chores[i]; ch.user != "" && ch.system == "" && ch.inside == "" && !ch.bare {
			by[ch.user[0]] = append(by[ch.user[0]], ch)
		}
	}
	return by
}()

// Near is how much of the start of a text is looked at, in bytes.
const Near = 400

// Part is a part of a message.
type Part struct {
	Start  []byte              // of its text, Near bytes at least where there are so many, without white space before it
	Raw    []byte              // all of it, as it stands in the request
	Decode func([]byte) []byte // makes text of Raw
}

// KindOf is what a request is for, as far as its words tell: system is how the
// parts of its prompt start, said are the parts of its newest user message, and
// tools says that it offers some. agent says that a subagent speaks, whom a
// model asks.
func KindOf(system [][]byte, said []Part, tools bool) (kind Kind, agent bool) {
	for i := range chores {
		switch ch := &chores[i]; {
		case ch.bare && tools || !ch.follows(system) || ch.user != "" && !slices.ContainsFunc(said, ch.asks):
		case ch.agent:
			agent = true
		default:
			return ch.kind, agent
		}
	}
	return KindTurn, agent
}

// MayAsk reports whether a text that begins with this byte may be how a client
// asks for a chore.
func MayAsk(first byte) bool { return asking[first] != nil }

// Asks reports whether a part of a message in the history is how a client asked
// for a chore: then no person wrote the message.
func Asks(p Part) bool {
	return len(p.Start) > 0 && slices.ContainsFunc(asking[p.Start[0]], func(ch *chore) bool { return ch.asks(p) })
}

// follows reports whether a system prompt is that of a chore.
func (ch *chore) follows(system [][]byte) bool {
	if ch.system == "" && ch.inside == "" {
		return true
	}
	return slices.ContainsFunc(system, func(s []byte) bool {
		return begins(s, ch.system) && bytes.Contains(s, ch.within)
	})
}

// asks reports whether a part of a message is how a client asks for a chore.
func (ch *chore) asks(p Part) bool {
	if !begins(p.Start, ch.user) || ch.whole && len(p.Start) > len(ch.user) || !bytes.Contains(p.Start[len(ch.user):], ch.after) {
		return false
	}
	if ch.holds == nil {
		return true
	}
	text := p.Decode(p.Raw)
	for _, line := range ch.holds {
		i := bytes.Index(text, []byte("\n"+line))
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}
