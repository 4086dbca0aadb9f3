package proxy

import (
	"bytes"
	"context"
	"encoding/hex"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// lastAnswer is the newest answer of a session, if it may be a summary of the session's history.
// The sequel tells: the next request lacks the earlier answers and contains this one.
type lastAnswer struct {
	begin   []byte // of the answer, normalized
	answers int    // number of the model's messages before the question
	turn    pendingTurn
	known   bool // it was stored as a summary
}

const (
	summaryAsk   = 300 // least bytes of a client's request for a summary; people are briefer
	summaryBegin = 128 // runes of lastAnswer.begin
)

func lastAnswerKey(at *where, session string) memo.Key {
	return keyOf(at.person.Link(dialect.RoleOther, []byte(session)), lastAnswerName)
}

// answersBefore returns the number of the model's messages before the person's newest.
func answersBefore(c *dialect.Conversation) (n int) {
	for i := range c.Last {
		if c.Messages[i].Role == dialect.RoleAssistant {
			n++
		}
	}
	return n
}

// noteAnswer stores the answer if it may be a summary, and else removes the session's last one.
func (p *pendingTurn) noteAnswer(said, answered string) {
	isSummary, turn := p.turn.Kind != "", *p
	turn.sequel, turn.round, turn.history, turn.calls = nil, nil, nil, nil
	la := &lastAnswer{normalized([]byte(dialect.SummaryIn(answered)), summaryBegin), p.answers, turn, isSummary && p.turn.User != ""}
	if la.answers == 0 || !isSummary && len(said) < summaryAsk || utf8.RuneCount(la.begin) < quotedRunes {
		la = nil
	}
	p.s.memo.Update(lastAnswerKey(&p.at, p.own), func(any) (any, int) {
		if la == nil {
			return nil, 0
		}
		return la, len(said) + len(answered)
	})
}

// sequelOf returns the session's last answer if this request shows that it is a summary, and
// whether the newest message has it: then that is not a person's. If nothing else shows a
// summary, only a message of the user counts: clients that send a window of the history begin
// with an answer too.
func (s *decider) sequelOf(c *dialect.Conversation, at *placed) (of *lastAnswer, newest bool) {
	f := &at.session
	la, _ := s.memo.Get(lastAnswerKey(&at.where, f.own)).(*lastAnswer)
	if la == nil || f.agent || f.kind != dialect.KindTurn || answersBefore(c) > la.answers {
		return nil, false
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		isAnswer := m.Role == dialect.RoleAssistant
		if m.Role == dialect.RoleUser || isAnswer && la.turn.turn.Kind != "" {
			holds := func(text []byte) bool {
				return bytes.Contains(normalized(text[:min(len(text), maxQuoting)], maxQuoting), la.begin)
			}
			if holds(c.Raw(i)) {
				return la, i == c.Last && holds(c.Text(i)) // a rule may have removed it
			}
		}
		if isAnswer {
			break
		}
	}
	return nil, false
}

// confirm stores the summary that the turn follows. To repeat it changes nothing.
func (p *pendingTurn) confirm() {
	was := &p.sequel.turn
	if p.sequel.known || !was.kept() {
		return
	}
	t := was.turn
	if t.Kind == "" {
		p.endTurns([]sentTurn{{turn: t.ID, targets: t.Targets}})
	}
	sum := graphiti.Digest("summary", t.ID)
	t.ID, t.Kind, t.User, t.Assistant = hex.EncodeToString(sum[:16]), graphiti.KindSessionSummary, dialect.SummaryIn(t.Assistant), ""
	p.memory.Planner.Remember(was.who, t.Generation, inject.Ended{By: inject.ForSummary, Answered: t.User})
	if err := p.memory.Turns.Add(context.Background(), t); err != nil {
		p.s.log.Warn("store summary failed", "error", err)
	}
}
