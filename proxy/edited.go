package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// maxSent is the number of turns after one history that are remembered.
const maxSent = 4

// maxAway bounds the turns that one message replaces.
const maxAway = 100

// sentTurn is a stored turn of a session.
type sentTurn struct {
	with    [16]byte // the conversation up to its message
	turn    string
	targets []graphiti.Target
	said    string    // its message, if that is short
	at      time.Time // end of its answer
}

func sentKey(session string, before dialect.Fingerprint) memo.Key {
	return keyOf(before.Link(dialect.RoleOther, []byte(session)), sentName)
}

// sent notes a stored turn by the history before it, and as one that followed the person's message
// before it.
func (p *pendingTurn) sent() {
	p.noteSent(sentKey(p.turn.Session, p.why.Before))
	if p.follows != (dialect.Fingerprint{}) {
		p.noteSent(keyOf(p.follows.Link(dialect.RoleOther, []byte(p.turn.Session)), followsName))
	}
}

func (p *pendingTurn) noteSent(key memo.Key) {
	p.s.memo.Update(key, func(was any) (any, int) {
		turns, _ := was.([]sentTurn)
		if !slices.ContainsFunc(turns, func(t sentTurn) bool { return t.with == p.why.With }) {
			turns = append(slices.Clone(turns[max(0, len(turns)-maxSent+1):]), sentTurn{p.why.With, p.turn.ID, p.turn.Targets, p.turn.User[:min(len(p.turn.User), maxTitled)], p.turn.Answered})
		}
		return turns, (128 + maxTitled) * len(turns)
	})
}

// noteSaid notes that the turn stores its message, unless another one has.
func (p *pendingTurn) noteSaid() (first bool) {
	if p.said == (dialect.Fingerprint{}) {
		return true
	}
	p.s.memo.Update(keyOf(p.said, saidName), func(was any) (any, int) {
		turn, ok := was.(string)
		if first = !ok || turn == p.turn.ID; first {
			turn = p.turn.ID
		}
		return turn, len(turn)
	})
	return first
}

// withFollowing adds the turns that followed turns: a person may go back over several messages.
func (p *pendingTurn) withFollowing(turns []sentTurn) []sentTurn {
	for i := 0; i < len(turns) && i < maxAway; i++ {
		from := dialect.Fingerprint(turns[i].with)
		next, _ := p.s.memo.Get(keyOf(from.Link(dialect.RoleOther, []byte(p.turn.Session)), followsName)).([]sentTurn)
		for _, t := range next {
			if t.turn != p.turn.ID && !slices.ContainsFunc(turns, func(o sentTurn) bool { return o.turn == t.turn }) {
				turns = append(turns, t)
			}
		}
	}
	return turns
}

// versions returns the turns of which this turn's message is an edited version: it follows the
// same history, came after their answers, and differs from theirs in less than half of the
// text. Without a history, a program may send all its messages so.
func (p *pendingTurn) versions() (old []sentTurn) {
	if p.answers == 0 {
		return nil
	}
	turns, _ := p.s.memo.Get(sentKey(p.turn.Session, p.why.Before)).([]sentTurn)
	for _, t := range turns {
		if t.with != p.why.With && t.at.Before(p.turn.Said) && isEdit(t.said, p.turn.User) {
			old = append(old, t)
		}
	}
	return old
}

// isEdit reports whether two texts have most of their beginning and end in common.
func isEdit(a, b string) bool {
	n, m, most := 0, 0, min(len(a), len(b))
	for n < most && a[n] == b[n] {
		n++
	}
	for m < most-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return 2*(n+m) > max(len(a), len(b))
}

// editedAway returns the turns that the person has replaced: they had the same history as
// the turn before the newest, and the conversation continues without them. Another message
// alone is no evidence, unless it is alike: programs also send messages after the same history.
// It also returns the conversation up to the person's message before the newest.
func (s *decider) editedAway(c *dialect.Conversation, chain []dialect.Fingerprint, session string, root dialect.Fingerprint) (away []sentTurn, follows dialect.Fingerprint) {
	i := c.Last - 1
	for i >= 0 && !c.Messages[i].Person {
		i--
	}
	if i < 0 {
		return nil, follows
	}
	if follows = chain[i]; i > 0 {
		root = chain[i-1]
	}
	key := sentKey(session, root)
	turns, _ := s.memo.Get(key).([]sentTurn)
	goesOn := func(t sentTurn) bool { return t.with == [16]byte(chain[i]) }
	if len(turns) < 2 || !slices.ContainsFunc(turns, goesOn) {
		return nil, follows
	}
	away = slices.DeleteFunc(slices.Clone(turns), goesOn)
	s.memo.Update(key, func(any) (any, int) {
		turns = slices.DeleteFunc(slices.Clone(turns), func(t sentTurn) bool { return !goesOn(t) })
		return turns, 128 * len(turns)
	})
	return away, follows
}

// endTurns ends stored turns that this turn replaces, or that were requests about it.
func (p *pendingTurn) endTurns(turns []sentTurn, reason string) {
	for _, t := range turns {
		p.s.observer.Message(p.turn.Client, graphiti.FateStored, graphiti.Fate{Name: graphiti.FateAbout, Reason: reason})
		if err := p.memory.Standing.EndTurn(context.Background(), p.who, t.turn, t.targets, p.turn.Generation); err != nil {
			p.s.log.Warn("end replaced turn failed", "error", err)
		}
	}
}
