package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Owned is a group with one of its owners.
type Owned struct {
	Group   string `json:"group"`
	Owner   string `json:"owner"`
	Scope   string `json:"scope"`
	Key     string `json:"key"`
	Session string `json:"session,omitempty"` // if set, only this session's part of the group
	Shared  bool   `json:"shared,omitempty"`  // the group has other owners too
	Empty   bool   `json:"empty,omitempty"`   // the group has no messages
}

// Part selects what to forget or export: a group, one session's messages in it, or a single
// message.
type Part struct {
	Group   string
	Session string // session key, or "" for the whole group
	Owner   string // owner of the session, or "" for all owners with that session ID
	Message string // graphiti.MessageID of an episode, or "" for all messages; excludes Session

	before time.Time // covers older messages only; zero for all
	work   bool      // covers messages about the work of agents only
}

// Means reports whether the part covers a turn. A session is forgotten in all groups, so
// its group does not matter.
func (p Part) Means(t *Turn) bool {
	switch {
	case p.Message != "":
		return slices.ContainsFunc(t.names(), func(name string) bool { return graphiti.MessageID(name) == p.Message })
	case p.Session != "":
		hash := graphiti.SessionHash(p.Session)
		return (t.OfSession() == hash || t.Import == hash) && (p.Owner == "" || t.Owner == p.Owner)
	}
	return slices.ContainsFunc(t.Targets, func(target graphiti.Target) bool { return target.Group == p.Group })
}

// names returns the possible names of a turn's messages.
func (t *Turn) names() (all []string) {
	for _, r := range t.Restored {
		all = append(all, r.Name)
	}
	for _, role := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant, graphiti.RoleSystem} {
		all = append(all, graphiti.EpisodeName(t.ID, role))
	}
	return all
}

// whole reports whether the part covers the whole group.
func (p Part) whole() bool { return p.Session+p.Message == "" && p.before.IsZero() }

// Said reports whether the part covers an episode.
func (p Part) Said(e *graphiti.Row) bool {
	if turn, _ := graphiti.TurnOf(e.Name); p.Message != "" {
		return graphiti.MessageID(e.Name) == p.Message || graphiti.IsWork(e.Name) && p.Means(&Turn{ID: turn})
	}
	if !p.before.IsZero() {
		return !e.Said.IsZero() && e.Said.Before(p.before) && (!p.work || graphiti.IsWork(e.Name))
	}
	return p.Session == "" || ofSession(e, graphiti.SessionHash(p.Session))
}

// ofSession reports whether an episode is from the session with a hash, or from such an import.
func ofSession(e *graphiti.Row, hash string) bool {
	return SessionOf(e.Source) == hash || gjson.Get(e.Source, "import").Str == hash
}

// SessionOf returns the session hash in a source description, or "" if there is none.
func SessionOf(source string) string { return gjson.Get(source, "session").Str }

// Scope returns the scope to raise when the part is forgotten.
func (p Part) Scope() string {
	switch {
	case p.Message != "":
		return "message:" + p.Message + ":" + p.Group
	case p.Session == "":
		return p.Group
	}
	return graphiti.SessionScope(p.Session, p.Owner)
}

// Scopes returns the scopes of a turn in a group: the group, the session, and the owner's
// session. If one of them has a newer generation than the turn, the group rejects the turn.
func (t *Turn) Scopes(group string) [3]string {
	session := t.OfSession()
	return [3]string{group, graphiti.SessionScopeOf(session, ""), graphiti.SessionScopeOf(session, t.Owner)}
}

func (s *Ledger) Owned(ctx context.Context, owner string) (list []Owned, err error) {
	err = each(ctx, s.db, `SELECT grp, owner, scope, key, (SELECT count(*) FROM owners o WHERE o.grp = g.grp) > 1
		FROM owners g WHERE ?1 = '' OR owner = ?1 ORDER BY scope, key, grp`, []any{owner}, func(scan func(...any) error) error {
		var o Owned
		err := scan(&o.Group, &o.Owner, &o.Scope, &o.Key, &o.Shared)
		list = append(list, o)
		return err
	})
	return list, err
}

// SessionGroups returns the groups that hold recent turns of a session.
func (s *Ledger) SessionGroups(ctx context.Context, session string) (list []Owned, err error) {
	err = each(ctx, s.db, `SELECT grp, owner, scope, key FROM sessions JOIN owners USING (grp, owner) WHERE session = ? ORDER BY scope, key, grp, owner`,
		[]any{graphiti.SessionHash(session)}, func(scan func(...any) error) error {
			o := Owned{Session: session}
			err := scan(&o.Group, &o.Owner, &o.Scope, &o.Key)
			list = append(list, o)
			return err
		})
	return list, err
}

// ofGroup selects the turns of a group that are not forgotten. The index turns_digest has the same
// expression between the group and the digest; anyState is true for each turn.
const (
	isKept   = "(state NOT IN ('cut', 'forgotten'))"
	ofGroup  = " WHERE grp = ?1 AND " + isKept + " = TRUE "
	anyState = isKept + " IN (FALSE, TRUE)"
)

// forgetTurns marks a group's turns as forgotten. Rows of interrupted answers stay: they have
// no text. Clients send such turns again.
const forgetTurns = "UPDATE turns SET state = 'forgotten', open = FALSE, at = ?2, sent = 0, error = ''" + ofGroup

// Forget deletes the messages and turns of a part that are older than a generation, and
// rejects such turns from now on. Withdrawn returns the ones that Graphiti may have. Forgotten
// turns stay as rows, because clients send them again.
func (s *Ledger) Forget(part Part, generation int64) error {
	if s.db.Shared() { // before the deletion: a turn of another process is either deleted or rejected
		err := s.db.Alone(context.Background(), func(tx *database.Tx) error { return raise(tx, part.Scope(), generation, time.Now()) })
		if err != nil {
			return fmt.Errorf("store a generation: %w", err)
		}
	}
	return s.write("forget", func(tx *database.Tx) error {
		tx.Checkpoint()
		now := time.Now()
		if err := raise(tx, part.Scope(), generation, now); err != nil {
			return err
		}
		_, kept, err := s.forgetKept(tx, part, generation, now)
		if err != nil || kept || part.Message != "" {
			return err
		}
		return disown(tx, part)
	})
}

// spared selects the turns of a group that a forget leaves: newer ones, and those of another
// owner. Its second column reports whether there are newer ones.
const spared = `SELECT coalesce(json_group_array(turn), '[]'), count(CASE WHEN generation >= ?2 THEN 1 END) > 0 FROM turns` + ofGroup + `
	AND (generation >= ?2 OR ?3 <> '' AND owner NOT IN ('', ?3))`

// forgetKept forgets the messages and turns of a part that are older than a generation. It returns
// the names of messages, unless it deletes all, and whether the group still has newer turns.
func (s *Ledger) forgetKept(tx *database.Tx, part Part, generation int64, now time.Time) (names []string, kept bool, err error) {
	var list string
	var others []string
	err = tx.QueryRow(spared, part.Group, generation, part.Owner).Scan(&list, &kept)
	if err == nil {
		err = json.Unmarshal([]byte(list), &others)
		slices.Sort(others)
	}
	if err != nil {
		return nil, false, err
	}
	var meant func(*graphiti.Row) bool
	if !part.whole() || kept {
		meant = func(e *graphiti.Row) bool {
			turn, _ := graphiti.TurnOf(e.Name)
			_, other := slices.BinarySearch(others, turn)
			return !other && part.Said(e)
		}
	}
	names, err = s.memory.Delete(tx, part.Group, meant)
	if err != nil {
		return nil, false, err
	}
	if part.before.IsZero() {
		err = s.withdraw(tx, part, generation, names, now)
	}
	if err != nil {
		return nil, false, err
	}
	if part.whole() {
		return names, kept, run(tx, forgetTurns+"AND generation < ?3", part.Group, now.UnixMilli(), generation)
	}
	for _, name := range names {
		if turn, ok := graphiti.TurnOf(name); ok && !part.work {
			if err := run(tx, forgetTurns+"AND turn = ?3", part.Group, now.UnixMilli(), turn); err != nil {
				return nil, false, err
			}
		}
	}
	return names, kept, nil
}

// disown deletes the ownership rows of a part.
func disown(tx *database.Tx, part Part) error {
	if part.Session != "" {
		return run(tx, "DELETE FROM sessions WHERE session = ? AND grp = ? AND (?3 = '' OR owner = ?3)", graphiti.SessionHash(part.Session), part.Group, part.Owner)
	}
	for _, statement := range []string{"DELETE FROM promoted WHERE grp = ?", "DELETE FROM sessions WHERE grp = ?", "DELETE FROM owners WHERE grp = ?"} {
		if err := run(tx, statement, part.Group); err != nil {
			return err
		}
	}
	return nil
}

// ImportScopes returns the scopes of the import that brought the turn, or none.
func (t *Turn) ImportScopes() []string {
	if t.Import == "" {
		return nil
	}
	return []string{graphiti.SessionScopeOf(t.Import, ""), graphiti.SessionScopeOf(t.Import, t.Owner)}
}

// raise sets the generation of a scope unless the stored one is newer.
func raise(tx *database.Tx, scope string, generation int64, now time.Time) error {
	return run(tx, "INSERT INTO floors AS f VALUES (?, ?, ?) ON CONFLICT (scope) DO UPDATE SET generation = CASE WHEN f.generation > excluded.generation THEN f.generation ELSE excluded.generation END, at = excluded.at",
		scope, generation, now.UnixMilli())
}

// Raise stores generations of scopes, forgets older turns of them, and returns the newest stored
// generation. It skips generations that the ledger has.
func (s *Ledger) Raise(floors map[string]int64) (newest int64, err error) {
	ctx := context.Background()
	for scope, generation := range floors {
		var known bool
		err := s.db.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM floors WHERE scope = ? AND generation >= ?)", []any{scope, generation}, &known)
		if err == nil && !known {
			err = s.forgetScope(ctx, scope, generation)
		}
		if err != nil {
			return 0, err
		}
	}
	return newest, s.db.QueryRow(ctx, "SELECT coalesce(max(generation), 0) FROM floors", nil, &newest)
}

// forgetScope forgets the parts of a scope that are older than a generation.
func (s *Ledger) forgetScope(ctx context.Context, scope string, generation int64) error {
	parts, err := s.partsOf(ctx, scope)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := s.Forget(p, generation); err != nil {
			return err
		}
	}
	return s.write("store a generation", func(tx *database.Tx) error { return raise(tx, scope, generation, time.Now()) })
}

// partsOf returns the parts that a scope covers.
func (s *Ledger) partsOf(ctx context.Context, scope string) (parts []Part, err error) {
	if message, ok := strings.CutPrefix(scope, "message:"); ok {
		id, group, _ := strings.Cut(message, ":")
		return []Part{{Group: group, Message: id}}, nil
	}
	hash, covers, ok := graphiti.SessionIn(scope)
	if !ok {
		return []Part{{Group: scope}}, nil
	}
	session, _ := graphiti.NamedSession(hash)
	err = each(ctx, s.db, "SELECT grp, owner FROM sessions WHERE session = ?", []any{hash}, func(scan func(...any) error) error {
		p := Part{Session: session}
		if err := scan(&p.Group, &p.Owner); err != nil || !covers(p.Owner) {
			return err
		}
		parts = append(parts, p)
		return nil
	})
	return parts, err
}

// refused reports whether a scope of a turn has a newer generation. It then records the
// turn as forgotten, so that no later backfill adds it.
func refused(tx *database.Tx, t *Turn, group string, now time.Time) (found bool, err error) {
	m := t.Scopes(group)
	err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM floors WHERE scope IN (?, ?, ?) AND generation > ?)", m[0], m[1], m[2], t.Generation).Scan(&found)
	if err != nil || !found {
		return false, err
	}
	// If the group has the turn's beginning, the row of the rest carries the digest.
	for _, part := range []*Turn{t, t.Rest()} {
		err := run(tx, `INSERT INTO turns (turn, grp, state, digest, at) SELECT ?1, ?2, 'forgotten', ?4, ?3
			WHERE NOT EXISTS (SELECT 1 FROM turns WHERE grp = ?2 AND `+anyState+` AND digest = ?4) OR ?5 ON CONFLICT DO NOTHING`,
			part.ID, group, now.UnixMilli(), t.Digest(), part == t)
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// run runs a statement, at the latest with the commit.
func run(tx *database.Tx, statement string, args ...any) error {
	return tx.Later(statement, args...)
}
