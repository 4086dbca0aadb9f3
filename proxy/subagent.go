package proxy

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// openFor is the longest time that a tool call counts as open.
const openFor = 10 * time.Minute

// callText is a string in the arguments of a tool call, or a final answer. A conversation
// whose first message equals it, and that starts while the call is open or soon after the
// answer, is a subagent's: the model wrote its task.
type callText struct {
	parent
	from, to time.Time           // start of the call's request, and end of the open call
	child    dialect.Fingerprint // the conversation with this task; zero before the first
	done     bool                // the subagent has answered
	launched bool                // the call has returned, and its subagent goes on
	answer   bool                // it is a final answer
}

func (t *callText) size() int { return len(t.session) + len(t.place.Directory) }

// parent is the conversation that a subagent belongs to, over any number of subagents between
// them.
type parent struct {
	session string // "" if the conversation is no subagent's
	place   dialect.Place
}

// The names of entries whose owner is a fingerprint.
const (
	callTextName uint64 = iota + 1
	callsName
	subagentName
	quotablesName
	sentName
	followsName
	openingName
	lastAnswerName
	lostName
	saidName
)

func textKey(caller dialect.Fingerprint, text []byte) memo.Key {
	return keyOf(caller.Link(dialect.RoleUser, bytes.TrimSpace(text)), callTextName)
}
func callsKey(asked dialect.Fingerprint) memo.Key { return keyOf(asked, callsName) }

func keyOf(f dialect.Fingerprint, name uint64) memo.Key {
	return memo.Key{Owner: memo.Owner(f), Name: name}
}

// openCalls stores the strings in the arguments of an answer's tool calls.
func (p *pendingTurn) openCalls(a *dialect.Answer) {
	var keys []memo.Key
	texts := a.Calls.Texts()
	for _, text := range texts {
		keys = append(keys, p.wrote(text))
	}
	if len(keys) == 0 {
		return
	}
	p.quotable(texts...)
	asked := []dialect.Fingerprint{p.end}
	if a.ID != "" { // the next request may contain only this reference
		asked = append(asked, p.at.person.Reference(a.ID))
	}
	for _, f := range asked {
		p.s.memo.Update(callsKey(f), func(any) (any, int) { return keys, 32 * len(keys) })
	}
}

// wrote stores a text of the model, and returns its key.
func (p *pendingTurn) wrote(text string) memo.Key {
	key := textKey(p.at.person, []byte(text))
	p.s.memo.Update(key, func(was any) (any, int) {
		now := time.Now()
		t, _ := was.(callText)
		if now.After(t.to) {
			t = callText{from: p.turn.Said}
		}
		t.parent, t.to, t.done = parent{p.who.Session, p.at.place}, now.Add(openFor), false
		return t, t.size()
	})
	return key
}

// wroteAnswer stores a final answer: some programs send it to another agent as a person's
// message. An echo of the person's message is theirs. A brief one ("ok") may be a person's: it is
// no task.
func (p *pendingTurn) wroteAnswer(text string) {
	if text = strings.TrimSpace(text); text != "" && text != strings.TrimSpace(p.turn.User) {
		p.s.changeText(p.wrote(text), func(t *callText) {
			if t.answer = utf8.RuneCountInString(text) >= quotedRunes; !t.answer {
				t.to = time.Now()
			}
		})
	}
}

// isAnswer reports whether a message is a recent answer of the model to the same caller, which a program
// sends to another agent.
func (s *decider) isAnswer(text []byte, at *where) bool {
	t, _ := s.memo.Get(textKey(at.person, text)).(callText)
	return t.answer && time.Now().Before(t.to)
}

// byModel reports whether the model recently wrote a text for the same caller.
func (s *decider) byModel(text []byte, at *where) bool {
	return s.memo.Get(textKey(at.person, text)) != nil
}

// launched matches the result of a call that started a subagent in the background: it names an
// id. failed matches the beginning of an error.
var (
	launched = regexp.MustCompile(`(\b(id|Id|ID)|[a-z](Id|ID|[_ -]id))\b"?\s*[:=]`)
	failed   = regexp.MustCompile(`(?i)^\W{0,3}(error|fail|exception|unable|cannot|could not|invalid)`)
)

// maxReceipt is the length of the results that are compared with launched, in bytes.
const maxReceipt = 2 << 10

// inBackground reports whether the results of the newest calls are short, without errors, and
// one of them names an id.
func inBackground(d dialect.Dialect, c *dialect.Conversation) (started bool) {
	if c.AfterCalls() > maxReceipt {
		return false
	}
	for _, r := range dialect.ReadRound(d, c.Round()).Results {
		if r.Failed || failed.MatchString(r.Text) {
			return false
		}
		started = started || launched.MatchString(r.Text)
	}
	return started
}

// closeCalls ends the newest tool calls of a conversation that continues.
func (s *decider) closeCalls(d dialect.Dialect, c *dialect.Conversation, chain []dialect.Fingerprint, at *where) {
	var asked []dialect.Fingerprint
	for i := len(c.Messages) - 1; i > 0; i-- {
		if c.Messages[i].Role == dialect.RoleAssistant {
			asked = append(asked, chain[i-1])
			break
		}
	}
	if previous := c.Field(dialect.FieldPreviousResponseID); len(previous) > 0 {
		asked = append(asked, at.person.Link(dialect.RoleOther, previous))
	}
	for _, f := range asked {
		keys, _ := s.memo.Get(callsKey(f)).([]memo.Key)
		if keys == nil {
			continue
		}
		s.memo.Update(callsKey(f), func(any) (any, int) { return nil, 0 })
		background := inBackground(d, c)
		for _, key := range keys {
			s.changeText(key, func(t *callText) {
				now := time.Now()
				if t.launched = background && !t.done; !t.launched && now.Before(t.to) {
					t.to = now
				}
			})
		}
	}
}

// changeText changes the entry of a text, if there is one.
func (s *decider) changeText(key memo.Key, change func(*callText)) {
	if s.memo.Get(key) == nil {
		return
	}
	s.memo.Update(key, func(was any) (any, int) {
		t, _ := was.(callText)
		change(&t)
		return t, t.size()
	})
}

// textsOf returns the keys of the texts in the newest message.
func textsOf(c *dialect.Conversation, at *where) (keys []memo.Key) {
	for text := range c.Texts(c.Last) {
		if len(text) > 0 {
			keys = append(keys, textKey(at.person, text))
		}
	}
	return keys
}

// adopt makes a conversation a subagent's.
func (s *decider) adopt(known Sessions, at *where, f *foundSession, thread dialect.Fingerprint, of parent) {
	if of.session != f.own {
		thread = childKey(at, f.own)
	}
	s.setParent(known, thread, of)
	f.inherit(at, of)
}

// inherit gives a subagent the session of its parent, and its place if it states none.
func (f *foundSession) inherit(at *where, of parent) {
	if of.session == "" {
		return
	}
	f.id, f.agent, f.first = of.session, true, false
	if at.place == (dialect.Place{}) && of.place != at.place {
		at.place, at.seen = of.place, true
	}
}

// childKey identifies a session that may be a subagent's.
func childKey(at *where, session string) dialect.Fingerprint {
	return at.person.Link(dialect.RoleOther, []byte("child\x00"+session))
}

// parentOf returns the parent of a session or a thread; zero if it is no subagent's. It reads
// the stored sessions once, unless the conversation is new.
func (s *decider) parentOf(ctx context.Context, known Sessions, of dialect.Fingerprint, isNew bool) (p parent) {
	key := keyOf(of, subagentName)
	if p, ok := s.memo.Get(key).(parent); ok || isNew {
		return p
	}
	session, _, err := known.Find(ctx, [][16]byte{of})
	if err != nil {
		s.log.Warn("find parent of a conversation failed", "error", err)
		return p
	}
	p.session = session
	s.memo.Update(key, func(any) (any, int) { return p, len(session) })
	return p
}

// setParent stores the parent of a session or a thread.
func (s *decider) setParent(known Sessions, of dialect.Fingerprint, p parent) {
	s.memo.Update(keyOf(of, subagentName), func(any) (any, int) { return p, len(p.session) + len(p.place.Directory) })
	known.PutAsync(of, p.session)
}

// recheck calls isTask again when the answer has ended: a subagent's request may arrive
// before the proxy has read the answer with the call, even if its client states that a model
// speaks.
func (p *pendingTurn) recheck() {
	if len(p.task.texts) == 0 {
		return
	}
	of, is := p.s.isTask(p.task.texts, p.task.at, p.at.place, p.turn.Said)
	if !is {
		return
	}
	f := foundSession{own: p.own}
	p.s.adopt(p.memory.Sessions, &p.at, &f, p.task.thread(p.own), of)
	p.who.Session, p.child = f.id, p.child || p.recall && p.kept()
	p.settle(graphiti.Fate{Name: graphiti.FateClient, Reason: graphiti.ClientSubagent})
	p.turn.Targets, p.recall = nil, false
}

// isTask reports whether a message of a conversation, at the time of its arrival, equals a
// string of an open call of the same caller in the same place, and returns the call's
// conversation. Each string starts one conversation, otherwise the requests of a loop would
// count as tasks.
func (s *decider) isTask(texts []memo.Key, conversation dialect.Fingerprint, place dialect.Place, arrived time.Time) (of parent, is bool) {
	for _, key := range texts {
		s.changeText(key, func(t *callText) {
			elsewhere := t.place != place && t.place != (dialect.Place{}) && place != (dialect.Place{})
			isOpen := arrived.After(t.from) && arrived.Before(t.to)
			if isOpen && !elsewhere && (t.child == conversation || t.child == dialect.Fingerprint{}) {
				is, of, t.child = true, t.parent, conversation
			}
		})
		if is {
			return of, true
		}
	}
	return parent{}, false
}

// endTask ends a subagent's use of its task: a person may say the same from now on.
func (p *pendingTurn) endTask() {
	p.s.changeText(textKey(p.at.person, []byte(p.turn.User)), func(t *callText) {
		if t.done = true; t.launched {
			t.to = time.Now()
		}
	})
}
