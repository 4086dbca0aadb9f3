package inject

import (
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// sessionMemo is the cached state of a person's session in a workspace. It is immutable.
type sessionMemo struct {
	keys  turnKeys
	shown shown
}

func (s *sessionMemo) size() int { return s.keys.size() + s.shown.size() }

func sessionKey(id TurnKey) memo.Key { return memo.Key{Kind: memo.Turns, Owner: memo.Owner(id)} }

// session returns the cached state of a session, which may be empty. id is a snapshotID.
func (m *Planner) session(id TurnKey) *sessionMemo {
	if s, ok := m.opts().Memo.Get(sessionKey(id)).(*sessionMemo); ok {
		return s
	}
	return &sessionMemo{}
}

// change replaces the cached state of a session by a modified copy.
func (m *Planner) change(id TurnKey, change func(*sessionMemo)) {
	m.opts().Memo.Update(sessionKey(id), func(was any) (any, int) {
		var now sessionMemo
		if s, ok := was.(*sessionMemo); ok {
			now = *s
		}
		change(&now)
		return &now, now.size()
	})
}

// sessionID returns the snapshotID of the turn's session.
func (t *turn) sessionID(who graphiti.Who) TurnKey {
	if t.session == (TurnKey{}) {
		t.session = snapshotID(who)
	}
	return t.session
}
