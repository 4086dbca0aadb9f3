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

// chores are the chores of all clients. The first that matches counts.
var chores = func() (all []chore) {
	for _, cl := range clients {
		for _, ch := range cl.chores {
			ch.client, ch.within, ch.after = cl.name, []byte(ch.inside), []byte(ch.then)
			all = append(all, ch)
		}
	}
	return all
}()

// asking are the chores that one message suffices to recognise, by its first byte.
var asking = func() (by [256][]*chore) {
	for i := range chores {
		if ch := &chores[i]; ch.user != "" && ch.system == "" && ch.inside == "" && !ch.bare {
			by[ch.user[0]] = append(by[ch.user[0]], ch)
		}
	}
	return by
}()

// startBytes is how many bytes of the start of a text rules look at.
const startBytes = 400

// messagePart is a part of a message, as rules look at it.
type messagePart struct {
	Start  []byte              // of its text: startBytes bytes or all of it, without leading white space
	Raw    []byte              // the whole part, as it stands in the request
	Decode func([]byte) []byte // decodes Raw
}

// kindOf returns what a request is for, judged by its words: system has the starts
// of its prompt's parts, said the parts of its newest user message, and tools says
// whether it offers tools. agent says that a subagent speaks: a model asks it, not
// a person.
func kindOf(system [][]byte, said []messagePart, tools bool) (kind Kind, agent bool) {
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

// mayAskChore reports whether a client's text that asks for a chore may begin with
// this byte.
func mayAskChore(first byte) bool { return asking[first] != nil }

// asksChore reports whether a client asked for a chore with this part of a message
// in the history: then no person wrote the message.
func asksChore(p messagePart) bool {
	return len(p.Start) > 0 && slices.ContainsFunc(asking[p.Start[0]], func(ch *chore) bool { return ch.asks(p) })
}

// follows reports whether this system prompt is the chore's.
func (ch *chore) follows(system [][]byte) bool {
	if ch.system == "" && ch.inside == "" {
		return true
	}
	return slices.ContainsFunc(system, func(s []byte) bool {
		return begins(s, ch.system) && bytes.Contains(s, ch.within)
	})
}

// asks reports whether a client asks for this chore with a part of a message.
func (ch *chore) asks(p messagePart) bool {
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
