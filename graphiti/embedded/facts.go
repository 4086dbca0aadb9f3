package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// betweenFacts is the number of free places before a fact, so that the words of other facts
// do not count for it.
const betweenFacts = reach + 1

// lastFact selects the id of the last fact of a group g.
const lastFact = "(SELECT max(id) FROM facts WHERE id BETWEEN g.id << 32 AND g.id << 32 | 4294967295)"

// KeepFacts stores the facts of a batch and marks its messages as distilled, in one
// transaction. It stores each fact in every group that has all of its messages. It returns
// the number of new facts: 0 if a message of the batch was forgotten in the meantime,
// because any fact may be from it.
func (e *Store) KeepFacts(ctx context.Context, b *graphiti.Batch, facts []graphiti.Distilled) (int, error) {
	kept := 0
	err := e.db.Write(ctx, func(tx *database.Tx) (err error) {
		kept = 0
		k := keeper{Store: e, tx: tx, now: time.Now()}
		whole, err := k.whole(b)
		if err == nil && whole {
			kept, err = k.keep(b, facts)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("keep facts: %w", err)
	}
	return kept, nil
}

// keeper stores facts within one transaction.
type keeper struct {
	*Store
	tx  *database.Tx
	now time.Time
}

// whole reports whether all messages of a batch exist.
func (k *keeper) whole(b *graphiti.Batch) (bool, error) {
	for i := range b.Messages {
		var exists bool
		err := k.tx.QueryRow("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ? AND name = ?)", b.Messages[i].ID, b.Messages[i].Name).Scan(&exists)
		if err != nil || !exists {
			return false, err
		}
	}
	return true, nil
}

func (k *keeper) keep(b *graphiti.Batch, facts []graphiti.Distilled) (kept int, err error) {
	for i := range facts {
		facts[i].Owner, facts[i].Made = b.Owner, k.now
	}
	groups, err := column[string](k.tx, "SELECT DISTINCT g.name FROM undistilled u JOIN messages m ON m.id = u.id JOIN groups g ON g.id = m.grp WHERE u.session = ? ORDER BY g.name", b.Session)
	if err != nil {
		return 0, err
	}
	for _, name := range groups {
		to, err := k.openGroup(name)
		if err != nil {
			return 0, err
		}
		n := 0
		for i := range facts {
			if stored, err := to.add(&facts[i]); err != nil {
				return 0, err
			} else if stored {
				n++
			}
		}
		if err := to.copyTurns(k.tx, to.from); err != nil {
			return 0, err
		}
		kept = max(kept, n)
		for i := range b.Messages {
			if err := to.read(b.Messages[i].Name); err != nil {
				return 0, err
			}
		}
		to.commit()
	}
	return kept, nil
}

// factGroup is a group that receives facts.
type factGroup struct {
	*keeper
	name  string
	group int64
	last  int64   // id of its last message or fact
	first bool    // no fact was added yet
	from  []int64 // last messages of the added facts

	// For the index.
	added []indexedMessage
	ended map[int64]ending // by place
	marks []int64          // places of distilled messages
}

func (k *keeper) openGroup(name string) (*factGroup, error) {
	g := &factGroup{keeper: k, name: name, first: true, ended: make(map[int64]ending)}
	if err := k.lock(k.tx, name); err != nil {
		return g, err
	}
	var fact int64
	err := k.tx.QueryRow("SELECT g.id, coalesce("+lastOf+", 0), coalesce("+lastFact+", 0) FROM groups g WHERE g.name = ?", name).Scan(&g.group, &g.last, &fact)
	g.last = max(g.group<<placeBits, g.last, fact)
	return g, err
}

// add stores a fact if the group has all of its messages, and not the fact. It reports
// whether it did.
func (g *factGroup) add(f *graphiti.Distilled) (bool, error) {
	var messages []int64
	for _, name := range f.Sources {
		var id int64
		switch err := g.tx.QueryRow("SELECT id FROM messages WHERE grp = ? AND name = ?", g.group, name).Scan(&id); {
		case errors.Is(err, sql.ErrNoRows):
			return false, nil
		case err != nil:
			return false, err
		}
		messages = append(messages, id)
	}
	var known bool
	err := g.tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM facts WHERE grp = ?1 AND name = ?2)
		OR EXISTS (SELECT 1 FROM facts WHERE grp = ?1 AND text = ?4 COLLATE NOCASE AND owner = ?3 AND (valid_until IS NULL OR valid_until > ?5))`,
		g.group, f.Name, f.Owner, f.Text, f.Since.UnixMilli()).Scan(&known)
	if err != nil || known || len(messages) == 0 {
		return false, err
	}
	id := g.last + betweenFacts
	if g.first {
		id, g.first = g.last+betweenConversations, false
	}
	if err := g.insert(id, f, messages); err != nil {
		return false, err
	}
	g.last, g.from = id, append(g.from, slices.Max(messages))
	g.added = append(g.added, indexedFact(id&maxPlace, f, placesOf(messages)))
	return true, g.replace(id, f)
}

func (g *factGroup) insert(id int64, f *graphiti.Distilled, messages []int64) error {
	_, err := g.tx.Exec("INSERT INTO facts (id, grp, name, owner, role, text, kind, about, valid_from, valid_until, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		id, g.group, f.Name, f.Owner, string(f.Role), f.Text, f.Kind, f.About, f.Since.UnixMilli(), millis(f.Until), f.Made.UnixMilli())
	for _, key := range f.Keys {
		if err == nil {
			_, err = g.tx.Exec("INSERT INTO fact_keys VALUES (?, ?) ON CONFLICT DO NOTHING", id, key)
		}
	}
	for _, m := range messages {
		if err == nil {
			_, err = g.tx.Exec("INSERT INTO fact_sources VALUES (?, ?) ON CONFLICT DO NOTHING", id, m)
		}
	}
	return err
}

// replace ends the facts that a new one replaces. A person's fact ends only their own.
func (g *factGroup) replace(id int64, f *graphiti.Distilled) error {
	for _, name := range f.Replaces {
		old, err := column[int64](g.tx, "UPDATE facts SET ended_by = ?, valid_until = ? WHERE grp = ? AND name = ? AND owner = ? AND ended_by IS NULL AND id < ?1 RETURNING id",
			id, f.Since.UnixMilli(), g.group, name, f.Owner)
		if err != nil {
			return err
		}
		for _, o := range old {
			g.ended[o&maxPlace] = ending{by: id & maxPlace, at: f.Since}
		}
	}
	return nil
}

// read marks a message as distilled.
func (g *factGroup) read(name string) error {
	ids, err := column[int64](g.tx, "UPDATE messages SET distilled = 1 WHERE grp = ? AND name = ? RETURNING id", g.group, name)
	for _, id := range ids {
		g.marks = append(g.marks, id&maxPlace)
		if err == nil {
			_, err = g.tx.Exec("DELETE FROM undistilled WHERE id = ?", id)
		}
	}
	return err
}

// commit makes the index follow the commit.
func (g *factGroup) commit() {
	g.tx.Committed(func() {
		if g.heads == nil {
			g.index.Distilled(g.name, g.group, g.added, g.ended, g.marks)
		}
		g.embed()
	})
}

// embed has the vectors of the added facts computed.
func (g *factGroup) embed() {
	if g.mean == nil {
		return
	}
	for _, m := range g.added {
		g.mean.more(g.group<<placeBits | m.Place)
	}
}

// EndDistilled implements graphiti.Distiller.
func (e *Store) EndDistilled(ctx context.Context, group string, names []string, at time.Time) error {
	list, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("end facts: %w", err)
	}
	err = e.db.Write(ctx, func(tx *database.Tx) error {
		k := keeper{Store: e, tx: tx}
		to, err := k.openGroup(group)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		const messages = "(SELECT m.id FROM json_each(?1) j JOIN messages m ON m.name = j.value AND m.grp = ?2)"
		ids, err := column[int64](tx, "UPDATE facts SET valid_until = ?3 WHERE ended_by IS NULL AND id IN (SELECT fact FROM fact_sources WHERE message IN "+messages+") RETURNING id",
			string(list), to.group, millis(at))
		for _, id := range ids {
			to.ended[id&maxPlace] = ending{at: at}
		}
		if err == nil && !at.IsZero() {
			_, err = tx.Exec("DELETE FROM undistilled WHERE id IN "+messages, string(list), to.group)
		}
		to.commit()
		return err
	})
	if err != nil {
		return fmt.Errorf("end facts: %w", err)
	}
	return nil
}

// forgetFacts deletes the facts from a message: their texts may tell it. The facts that they
// had ended are valid again, and their messages count again.
func forgetFacts(tx *database.Tx, message string) error {
	facts, err := column[int64](tx, "SELECT fact FROM fact_sources WHERE message = ?", message)
	if err != nil {
		return err
	}
	return deleteFacts(tx, facts)
}

func deleteFacts(tx *database.Tx, facts []int64) error {
	for _, id := range facts {
		for _, q := range []string{
			"UPDATE messages SET distilled = 0 WHERE id IN (SELECT message FROM fact_sources WHERE fact = ?)",
			"UPDATE facts SET (ended_by, valid_until) = (SELECT ended_by, valid_until FROM facts WHERE id = ?1) WHERE ended_by = ?1",
			"DELETE FROM vectors WHERE id = ?",
		} {
			if _, err := tx.Exec(q, id); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(forgetPulled, id, time.Now().UnixMilli()); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM facts WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// factsMeant returns the facts of a group that a forget selects by their names.
func factsMeant(tx *database.Tx, group int64, meant func(*graphiti.Row) bool) (ids []int64, err error) {
	rows, err := tx.Query("SELECT id, name FROM facts WHERE grp = ?", group)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var r graphiti.Row
		if err := rows.Scan(&id, &r.Name); err != nil {
			return nil, err
		}
		if meant(&r) {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// RestoreDistilled implements graphiti.Distiller.
func (e *Store) RestoreDistilled(ctx context.Context, group string, facts []graphiti.Distilled) (int, error) {
	kept := 0
	err := e.db.Write(ctx, func(tx *database.Tx) error {
		kept = 0
		k := keeper{Store: e, tx: tx, now: time.Now()}
		to, err := k.openGroup(group)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range facts {
			f := &facts[i]
			if f.Owner, err = k.ownerOf(to.group, f.Sources); err != nil {
				return err
			}
			stored, err := to.add(f)
			if err != nil {
				return err
			}
			if stored {
				kept++
			}
			for _, name := range f.Sources {
				if err := to.read(name); err != nil {
					return err
				}
			}
		}
		for i := range facts {
			_, err := tx.Exec("UPDATE facts SET ended_by = (SELECT id FROM facts WHERE grp = ?1 AND name = ?2) WHERE grp = ?1 AND name = ?3 AND ended_by IS NULL AND ?2 <> ''",
				to.group, facts[i].EndedBy, facts[i].Name)
			if err != nil {
				return err
			}
		}
		tx.Committed(func() {
			e.index.Deleted(group) // built again
			to.embed()
		})
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("restore facts: %w", err)
	}
	return kept, nil
}

// ownerOf returns the owner of a group in which messages were restored.
func (k *keeper) ownerOf(group int64, sources []string) (string, error) {
	owners, err := column[string](k.tx, "SELECT o.owner FROM owners o JOIN groups g ON g.name = o.grp WHERE g.id = ? LIMIT 2", group)
	if err != nil || len(owners) < 2 {
		return strings.Join(owners, ""), err
	}
	return "messages " + strings.Join(sources, " "), nil
}

// column returns the only column of all rows.
func column[T any](tx *database.Tx, query string, args ...any) (all []T, err error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func placesOf(ids []int64) []int64 {
	places := make([]int64, len(ids))
	for i, id := range ids {
		places[i] = id & maxPlace
	}
	return places
}

// millis returns a time for the file: nil for the zero time.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}
