package proxy

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// turnOwner is the owner of a request's turn: its person's, a client's (a chore, or a
// request about a turn), or a model's (a subagent). owner decides it once for each request. The end
// of the answer, which may show more, reads the evidence.
type turnOwner struct {
	kind    dialect.Kind // the request's kind, compared with its session; for a transcript, of the question about it
	guess   bool         // the kind was inferred, from the words or from the session's other turns
	chore   bool         // the request differs from the session's turns
	unseen  bool         // a program continues a turn whose earlier requests were not seen
	atOnce  bool         // a program may have written the newest message, right after an answer
	agent   bool         // the request is from a subagent
	sequel  *lastAnswer  // the summary that replaces the history in the request; nil if none is known
	summary bool         // the newest message has that summary, so it is not a person's
	why     capture.Doubt
	client  string // the product of the User-Agent

	// Evidence for the end of the answer; see witness.
	task       firstMessage          // of the conversation; zero for a subagent's
	history    []dialect.Fingerprint // of the newest messages before the person's; nil if the conversation opens
	about      string                // the end of the turn before, which a title is about; may be empty
	said       dialect.Fingerprint   // the message without the answers before; zero without any
	stopped    bool                  // the message before it has no answer
	answers    int                   // number of the model's messages before the person's, or the client's
	instructed bool                  // a client's text in a tool round may be a request of the client
}

// owner decides whose turn a request is, from the strongest evidence to the weakest: what the client
// states, a task that the model wrote, a difference from the session's turns, a quotation of a turn, the
// time, a summary. asked is the kind before the comparison with the session.
func (s *decider) owner(ctx context.Context, r *request, p *parsed, at *placed) (asked dialect.Kind) {
	c, f := p.conv, &at.session
	s.subagent(ctx, r, p, at)
	asked = f.kind
	f.why.Before, f.why.With, f.why.Twin = at.root, at.root, twinOf(c, at)
	if c.Last >= 0 {
		f.why.With = f.chain[c.Last]
	}
	if c.Last > 0 {
		f.why.Before = f.chain[c.Last-1]
	}
	f.client = identity.Product(r.head.UserAgent())
	note := s.sessionNote(sessionOf{at.base, f.id})
	if f.unseen = f.kind == dialect.KindMachine && c.Last >= 0 && note == (sessionNote{}) && (f.first || f.withoutPlace); f.unseen {
		f.kind, asked = dialect.KindTurn, dialect.KindTurn
	}
	doubt := false
	switch {
	case f.kind != dialect.KindTurn || f.agent || c.Last < 0:
	case note.isChore(c, f.chain):
		f.kind, f.guess, f.chore = c.Beside(), true, true
	default:
		f.kind, doubt = s.aboutTurn(&note, c, at, f.client)
	}
	f.doubts(&note, c, doubt)
	if f.sequel, f.summary, at.pending = s.sequelOf(c, at); at.pending != nil {
		f.kind, asked = dialect.KindTurn, dialect.KindTurn
	}
	return asked
}

// doubts sets the reason for a doubt. A program may have written a message right after an answer, but a
// line may be a person's, typed during the answer.
func (f *foundSession) doubts(note *sessionNote, c *dialect.Conversation, doubt bool) {
	f.atOnce = f.kind == dialect.KindTurn && !f.agent && note.isAtOnce(c, f.chain, time.Now())
	switch {
	case doubt, f.atOnce && c.IsLine(c.Last):
		f.why.Reason = graphiti.HeldDoubt
	case len(f.why.Twin.Whole) > 0:
		f.why.Reason = graphiti.HeldTwin
	}
}

// witness reads the evidence for the end of the answer.
func (f *foundSession) witness(c *dialect.Conversation) {
	if f.instructed = c.Instructed(); f.agent && f.id != f.own { // else its parent may not be known yet
		f.task = firstMessage{}
	}
	asks := c.Last // only answers before it are earlier than the question, which may be a client's in a tool round
	switch {
	case f.instructed:
		asks = len(c.Messages)
	case f.kind == dialect.KindSummary:
		asks = max(c.Last, c.Newest)
	}
	if f.answers = answersBefore(c, asks); f.answers > 0 && c.Last >= 0 && f.kind != dialect.KindSummary {
		f.said = saidOf(c, f.own)
	}
	if !c.Opens() {
		f.history = slices.Clone(f.chain[max(0, c.Last-maxHistory):max(0, c.Last)])
	}
	f.about, f.stopped = lastTurn(c), c.Last > 0 && c.Messages[c.Last-1].Person
}

// subagent sets whether a request is from a subagent, and gives it the session of its parent.
func (s *decider) subagent(ctx context.Context, r *request, p *parsed, at *placed) {
	c, f, known := p.conv, &at.session, r.memory.Sessions
	s.closeCalls(p.dialect, c, f.chain, &at.where)
	f.task = firstOf(c, f.chain, &at.where)
	m := &f.task
	of, is := s.isTask(m.texts, m.at, at.place, time.Now())
	thread := m.thread(f.own)
	switch child := p.claims.Child(); {
	case child != "": // its parent may have one too
		f.own = child
		if key := childKey(&at.where, child); s.parentOf(ctx, known, key, false).session != f.id {
			s.setParent(known, key, parent{session: f.id})
		}
	case c.Spawned(): // the client states who speaks
		f.agent = false
	case is:
		s.adopt(known, &at.where, f, thread, of)
	case len(m.texts) == 0: // it goes on
		f.inherit(&at.where, s.parentOf(ctx, known, thread, !f.byID))
		if f.agent && c.Last >= 0 && !c.Answered() { // its parent may have resumed it
			s.isTask(textsOf(c, &at.where), f.chain[c.Last], at.place, time.Now())
		}
	case f.agent && !f.byID: // a person says the same
		f.id, f.agent = f.own, false
		s.setParent(known, childKey(&at.where, f.own), parent{})
	case s.parentOf(ctx, known, thread, true).session != "":
		s.setParent(known, thread, parent{})
	}
	f.agent = f.agent || p.subagent
}

// firstMessage identifies the first message of a conversation.
type firstMessage struct {
	texts []memo.Key          // of callTexts; empty after the first answer
	at    dialect.Fingerprint // of the conversation up to this message
}

// firstOf returns the first message of a conversation.
func firstOf(c *dialect.Conversation, chain []dialect.Fingerprint, at *where) (m firstMessage) {
	first := 0
	for first < c.Last && !c.Messages[first].Person {
		first++
	}
	m.at = chain[first]
	if c.Last >= 0 && c.Opens() && len(c.Field(dialect.FieldPreviousResponseID)) == 0 {
		m.texts = textsOf(c, at)
	}
	return m
}

// thread identifies a conversation within a session. Some clients give a subagent the session
// of its parent.
func (m *firstMessage) thread(session string) dialect.Fingerprint {
	return m.at.Link(dialect.RoleOther, []byte(session))
}

// aboutTurn returns KindProbe for a request about an earlier turn, such as for its title:
// it quotes the turn, and lacks its tools or has another system prompt. A quotation without
// these differences leaves a doubt, as does a request that continues a session without its
// tools. One that quotes several turns and asks to sum up gets their session.
func (s *decider) aboutTurn(note *sessionNote, c *dialect.Conversation, at *placed, client string) (kind dialect.Kind, doubt bool) {
	f := &at.session
	if c.Tools || c.Answered() {
		return dialect.KindTurn, false
	}
	if answeredBefore(c) {
		if s.continuesProbe(c, f.chain) {
			return dialect.KindProbe, false
		}
		return dialect.KindTurn, note.lacksTools(c) && !note.erred(c, f.chain)
	}
	switch q, turns := s.quoted(c, &at.where, client); {
	case q == nil:
		return dialect.KindTurn, false
	case !q.tools && q.prompt == c.PromptHash():
	case turns > 1 && q.of.session != "" && c.Beside() == dialect.KindSummary:
		if f.guess = true; !f.byID {
			f.id, f.own, f.first = q.of.session, q.of.session, false
		}
		if at.place == (dialect.Place{}) {
			at.place, at.seen = q.of.place, true
		}
		return dialect.KindSummary, false
	default:
		return dialect.KindProbe, false
	}
	return dialect.KindTurn, true
}

// twinOf returns the newest message for a comparison with others. A short message has no words.
func twinOf(c *dialect.Conversation, at *placed) capture.Twin {
	t := capture.Twin{Of: at.person, Prompt: c.PromptHash(), Form: c.Format, Tools: c.Tools}
	if at.session.byID {
		t.Session = at.session.own
	}
	if c.Last < 0 {
		return t
	}
	if t.Text = normalized(c.Text(c.Last), maxTwin); utf8.RuneCount(t.Text) < minQuoted {
		t.Text = nil
	} else if c.Opens() && !c.Tools && (t.Form || t.Prompt != xxhash.Sum64(nil)) {
		t.Whole = normalized(c.Raw(c.Last), maxWhole)
	}
	return t
}

// lastTurn returns the end of the turn before the newest, if the request offers no tools:
// a client may ask for a title of it.
func lastTurn(c *dialect.Conversation) string {
	if c.Tools || !answeredBefore(c) {
		return ""
	}
	var b strings.Builder
	for i := c.Last - 1; i >= 0; i-- {
		m := &c.Messages[i]
		if m.Person || m.Role == dialect.RoleAssistant {
			text := c.Text(i)
			b.Write(text[:min(len(text), maxTitled)])
			b.WriteByte('\n')
		}
		if m.Person {
			break
		}
	}
	return b.String()
}

// saidOf identifies a message in its session. Answers before it do not count: a client may
// send it to several models, or after another answer.
func saidOf(c *dialect.Conversation, session string) (f dialect.Fingerprint) {
	f = f.Link(dialect.RoleOther, []byte(session))
	newest := c.Last
	for i := c.Last; i >= 0; i-- {
		if m := &c.Messages[i]; m.Person {
			newest, f = i, f.Link(dialect.RoleUser, nil)
		}
	}
	return f.Link(dialect.RoleUser, c.Text(newest)).Link(dialect.RoleUser, c.Text(c.Last))
}

// sequelOf returns the session's last answer if this request shows that it is a summary, and
// whether the newest message has it: then that is not a person's. If nothing else shows a
// summary, only a message of the user counts: clients that send a window of the history begin
// with an answer too. If no person has spoken since, the request continues the open turn.
func (s *decider) sequelOf(c *dialect.Conversation, at *placed) (of *lastAnswer, newest bool, open *pendingTurn) {
	f := &at.session
	la, _ := s.memo.Get(lastAnswerKey(&at.where, f.own)).(*lastAnswer)
	if isTurn := f.kind == dialect.KindTurn || f.kind == dialect.KindMachine && c.Resumes(); la == nil || f.agent || !isTurn || answersBefore(c, c.Last) > la.answers {
		return nil, false, nil
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		isAnswer := m.Role == dialect.RoleAssistant
		if m.Role == dialect.RoleUser || isAnswer && la.turn.turn.Kind != "" {
			holds := func(text []byte) bool {
				return len(la.begin) > 0 && bytes.Contains(normalized(text[:min(len(text), maxQuoting)], maxQuoting), la.begin)
			}
			if holds(c.Raw(i)) {
				newest = i == c.Last && holds(c.Text(i)) // a rule may have removed it
				return la, newest, la.goesOn(newest || c.Last < i)
			}
		}
		if m.Role == dialect.RoleCompacted && la.turn.turn.Kind != "" && len(la.begin) == 0 {
			return nil, false, la.goesOn(c.Last < i)
		}
		if isAnswer {
			break
		}
	}
	return nil, false, nil
}
