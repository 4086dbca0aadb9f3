package proxy

import (
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
	begin   []byte // of the answer, normalized; empty if it cannot be a summary, or is unreadable
	answers int    // number of the model's messages before the question
	turn    pendingTurn
	known   bool         // it was stored as a summary
	open    *pendingTurn // the session's turn that has no answer yet, or nil
}

const (
	summaryAsk   = 300 // least bytes of a client's request for a summary; people are briefer
	summaryBegin = 128 // runes of lastAnswer.begin
)

func lastAnswerKey(at *where, session string) memo.Key {
	return keyOf(at.person.Link(dialect.RoleOther, []byte(session)), lastAnswerName)
}

// answersBefore returns the number of the model's messages before message i.
func answersBefore(c *dialect.Conversation, i int) (n int) {
	for i--; i >= 0; i-- {
		if c.Messages[i].Role == dialect.RoleAssistant {
			n++
		}
	}
	return n
}

// apart returns a copy of the turn for another request.
func (p *pendingTurn) apart() pendingTurn {
	turn := *p
	turn.sequel, turn.round, turn.history, turn.calls = nil, nil, nil, nil
	return turn
}

// changeLastAnswer replaces the session's last answer.
func (p *pendingTurn) changeLastAnswer(change func(was *lastAnswer) *lastAnswer) {
	p.s.memo.Update(lastAnswerKey(&p.at, p.own), func(was any) (any, int) {
		la, _ := was.(*lastAnswer)
		if la = change(la); la == nil {
			return nil, 0
		}
		size := len(la.begin) + len(la.turn.turn.User) + len(la.turn.turn.Assistant)
		if la.open != nil {
			size += len(la.open.turn.User)
		}
		return la, size
	})
}

// noteOpen stores that the session's turn goes on: the client may replace the history before
// the turn is answered.
func (p *pendingTurn) noteOpen() {
	open := p.apart()
	open.turn.Assistant = ""
	p.changeLastAnswer(func(was *lastAnswer) *lastAnswer {
		var la lastAnswer
		if was != nil {
			la = *was
		}
		la.open = &open
		return &la
	})
}

// noteAnswer stores the answer if it may be a summary, and else removes the session's last one.
func (p *pendingTurn) noteAnswer(said, answered string) {
	isSummary := p.turn.Kind != ""
	begin := normalized([]byte(dialect.SummaryIn(answered)), summaryBegin)
	if !isSummary && (p.answers == 0 || !p.instructed && len(said) < summaryAsk) || utf8.RuneCount(begin) < quotedRunes {
		begin = nil
	}
	p.changeLastAnswer(func(was *lastAnswer) *lastAnswer {
		la := &lastAnswer{begin: begin, answers: p.answers, turn: p.apart(), known: isSummary && p.turn.User != ""}
		switch {
		case isSummary && was != nil:
			la.open = was.open
		case begin == nil:
			return nil
		case p.instructed:
			la.open = p.reopened(said)
		}
		return la
	})
}

// reopened returns the turn that has ended with an answer to the client, if that was a summary:
// then the person's message has no answer yet.
func (p *pendingTurn) reopened(said string) *pendingTurn {
	open := p.apart()
	sum := graphiti.Digest("reopened", p.turn.ID)
	open.turn.ID, open.turn.User, open.turn.Assistant, open.said = hex.EncodeToString(sum[:16]), said, "", dialect.Fingerprint{}
	return &open
}

// goesOn returns a copy of the open turn if the request continues it.
func (la *lastAnswer) goesOn(continues bool) *pendingTurn {
	if !continues || la.open == nil {
		return nil
	}
	turn := *la.open
	return &turn
}

// confirm stores the summary that the turn follows. To repeat it changes nothing.
func (p *pendingTurn) confirm() {
	was := &p.sequel.turn
	if p.sequel.known || !was.kept() {
		return
	}
	t := was.turn
	if t.Kind == "" {
		p.endTurns([]sentTurn{{turn: t.ID, targets: t.Targets}}, string(inject.ReasonSummary))
	}
	sum := graphiti.Digest("summary", t.ID)
	t.ID, t.Kind, t.User, t.Assistant = hex.EncodeToString(sum[:16]), graphiti.KindSessionSummary, dialect.SummaryIn(t.Assistant), ""
	p.memory.Planner.Remember(was.who, t.Generation, inject.Ended{By: inject.ForSummary, Answered: t.User})
	if err := p.memory.Turns.Add(context.Background(), t); err != nil {
		p.s.log.Warn("store summary failed", "error", err)
	}
}
