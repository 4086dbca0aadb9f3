package dialect

import (
	"bytes"
	"fmt"
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

func (k *Kind) UnmarshalText(text []byte) error {
	kind, known := map[string]Kind{"title": KindTitle, "summary": KindSummary, "probe": KindProbe}[string(text)]
	if *k = kind; !known {
		return fmt.Errorf("unknown kind %q", text)
	}
	return nil
}

// chores are the chores of all clients. The first match counts.
var chores = func() (all []chore) {
	for _, cl := range clients {
		for _, ch := range cl.Chores {
			ch.client, ch.within, ch.after = cl.Name, []byte(ch.Inside), []byte(ch.Then)
			all = append(all, ch)
		}
	}
	return all
}()

// asking holds the chores that one message suffices to recognise, by its first byte.
var asking = func() (by [256][]*chore) {
	for i := range chores {
		if ch := &chores[i]; ch.User != "" && ch.System == "" && ch.Inside == "" && !ch.Bare {
			by[ch.User[0]] = append(by[ch.User[0]], ch)
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
	for i := range chores {
		switch ch := &chores[i]; {
		case ch.Bare && tools || !ch.follows(system) || ch.User != "" && !slices.ContainsFunc(said, ch.asks):
		case ch.Agent:
			agent = true
		default:
			return ch.Kind, agent, ch.client
		}
	}
	return KindTurn, agent, ""
}

// asksChore reports whether this part of a message in the history is a client's request for
// a chore: then no person wrote the message.
func asksChore(p messagePart) bool {
	return len(p.Start) > 0 && slices.ContainsFunc(asking[p.Start[0]], func(ch *chore) bool { return ch.asks(p) })
}

// follows reports whether this system prompt belongs to the chore.
func (ch *chore) follows(system [][]byte) bool {
	if ch.System == "" && ch.Inside == "" {
		return true
	}
	return slices.ContainsFunc(system, func(s []byte) bool {
		return begins(s, ch.System) && bytes.Contains(s, ch.within)
	})
}

// asks reports whether a part of a message is a client's request for this chore.
func (ch *chore) asks(p messagePart) bool {
	if !begins(p.Start, ch.User) || ch.Whole && len(p.Start) > len(ch.User) || !bytes.Contains(p.Start[len(ch.User):], ch.after) {
		return false
	}
	if ch.Holds == nil {
		return true
	}
	text := p.Decode(p.Raw)
	for _, line := range ch.Holds {
		i := bytes.Index(text, []byte("\n"+line))
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}
