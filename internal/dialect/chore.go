package dialect

import (
	"bytes"
	"slices"
)

// Kind is the purpose of a request.
type Kind uint8

// The kinds of requests. All but KindTurn are forwarded without new recall, and are not
// stored.
const (
	KindTurn    Kind = iota // a person's turn, or a tool round of one
	KindTitle               // the client asks for a title, tags or follow-ups
	KindSummary             // the client compacts its history
	KindProbe               // quota, topic, autocompletion, choice of tools
	KindMachine             // no person wrote the newest user message
)

// chores are the chores of all clients. The first match counts.
var chores = func() (all []chore) {
	for _, cl := range clients {
		for _, ch := range cl.chores {
			ch.client, ch.within, ch.after = cl.name, []byte(ch.inside), []byte(ch.then)
			all = append(all, ch)
		}
	}
	return all
}()

// asking holds the chores that one message suffices to recognise, by its first byte.
var asking = func() (by [256][]*chore) {
	for i := range chores {
		if ch := &chores[i]; ch.user != "" && ch.system == "" && ch.inside == "" && !ch.bare {
			by[ch.user[0]] = append(by[ch.user[0]], ch)
		}
	}
	return by
}()

// startBytes is the length of the start of a text that the rules read.
const startBytes = 400

// messagePart is a part of a message in the form that the rules read.
type messagePart struct {
	Start  []byte              // of its text: startBytes bytes or all of it, without leading white space
	Raw    []byte              // the whole part, undecoded
	Decode func([]byte) []byte // decodes Raw
}

// kindOf returns the kind of a request, judged by its words: system holds the starts of its
// prompt's parts, said the parts of its newest user message, and tools reports whether it
// offers tools. agent reports whether a subagent speaks: a model asks it, not a person. rule is
// the client of the rule for a chore.
func kindOf(system [][]byte, said []messagePart, tools bool) (kind Kind, agent bool, rule string) {
	var prompts, words firstBytes
	for _, s := range system {
		prompts.add(s)
	}
	for i := range said {
		words.add(said[i].Start)
	}
	for i := range chores {
		switch ch := &chores[i]; {
		case !prompts.may(ch.system) || !words.may(ch.user): // most, at once
		case ch.bare && tools || !ch.follows(system) || ch.user != "" && !slices.ContainsFunc(said, ch.asks):
		case ch.agent:
			agent = true
		default:
			return ch.kind, agent, ch.client
		}
	}
	return KindTurn, agent, ""
}

// firstBytes is the set of the first bytes of texts.
type firstBytes [256 / 64]uint64

func (f *firstBytes) add(text []byte) {
	if len(text) > 0 {
		f[text[0]/64] |= 1 << (text[0] % 64)
	}
}

// may reports whether one of the texts may begin with start, which may be empty.
func (f *firstBytes) may(start string) bool {
	return start == "" || f[start[0]/64]&(1<<(start[0]%64)) != 0
}

// mayAskChore reports whether a client's text that asks for a chore may begin with this
// byte.
func mayAskChore(first byte) bool { return asking[first] != nil }

// asksChore reports whether this part of a message in the history is a client's request for
// a chore: then no person wrote the message.
func asksChore(p messagePart) bool {
	return len(p.Start) > 0 && slices.ContainsFunc(asking[p.Start[0]], func(ch *chore) bool { return ch.asks(p) })
}

// follows reports whether this system prompt belongs to the chore.
func (ch *chore) follows(system [][]byte) bool {
	if ch.system == "" && ch.inside == "" {
		return true
	}
	return slices.ContainsFunc(system, func(s []byte) bool {
		return begins(s, ch.system) && bytes.Contains(s, ch.within)
	})
}

// asks reports whether a part of a message is a client's request for this chore.
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
