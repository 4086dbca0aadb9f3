package embedded

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// PostgresSchema has the statements that create the tables in Postgres. Triggers give each row
// the rev of its group.
//
//go:embed schema_postgres.sql
var PostgresSchema string

// OpenShared returns the store in a database that replicas share.
//
// Each transaction first locks its groups, which raises their revs. So the order of a group's revs
// is the order of its commits, and whoever has read the rows up to a rev misses no earlier one.
// Deleted rows leave no row, so a deletion raises the epoch.
func OpenShared(db database.DB) *Store {
	e := newStore(db)
	e.heads = &heads{of: make(map[string]known)}
	return e
}

// heads are the states of groups up to which the indexes in RAM have their rows. It is safe for
// concurrent use.
type heads struct {
	mu sync.Mutex // guards of, and orders the changes of an index
	of map[string]known
}

// known is a head with the time at which it became known.
type known struct {
	head
	at time.Time
}

// head is the state of a group; zero if the group does not exist.
type head struct{ id, rev, epoch int64 }

// maxHeads bounds heads.of. Beyond it all of them are read again.
const maxHeads = 1 << 16

// lock locks groups until the end of the transaction, creates missing ones, and raises their
// revs. In a file there is only one writer.
func (e *Store) lock(tx *database.Tx, groups ...string) error {
	if e.heads == nil {
		return nil
	}
	list, _ := json.Marshal(groups) // text only
	return tx.Later("INSERT INTO groups AS g (name) SELECT value FROM json_each(?) ORDER BY value ON CONFLICT (name) DO UPDATE SET rev = g.rev + 1", string(list))
}

// insertShared is insertAll in one round trip.
func (e *end) insertShared(tx *database.Tx, messages []graphiti.Row) ([]int64, error) {
	ids, said := make([]int64, len(messages)), make([]int64, len(messages))
	var texts [5][]string
	for i := range messages {
		m := &messages[i]
		said[i] = m.Said.UnixMilli()
		ids[i], e.talk = e.next(m, said[i])
		e.last, e.said = ids[i], said[i]
		for c, text := range [5]string{m.Name, string(m.Role), m.Speaker, m.Text, m.Source} {
			texts[c] = append(texts[c], text)
		}
	}
	stored, err := column[int64](tx, `INSERT INTO messages (id, grp, name, role, speaker, content, source, said, kept)
		SELECT r.id, ?8, r.name, r.role, r.speaker, r.content, r.source, r.said, ?9
		FROM unnest(?1::bigint[], ?2::text[], ?3::text[], ?4::text[], ?5::text[], ?6::text[], ?7::bigint[]) AS r(id, name, role, speaker, content, source, said)
		ORDER BY r.id ON CONFLICT (grp, name) DO NOTHING RETURNING id`,
		ids, texts[0], texts[1], texts[2], texts[3], texts[4], said, e.group, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if !slices.Contains(stored, id) { // the group has its name
			ids[i] = 0
		}
	}
	return ids, nil
}

// raiseRev raises the revs of groups with these numbers. It locks them in the order of lock.
const raiseRev = "UPDATE groups SET rev = rev + 1 WHERE id IN (SELECT id FROM groups WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY name FOR UPDATE) "

// numbersOf returns the numbers of the groups of a batch, as JSON.
func numbersOf(batch []unreadMessage) string {
	seen, list := make(map[int64]bool), []int64{}
	for i := range batch {
		if g := batch[i].id >> placeBits; !seen[g] {
			seen[g], list = true, append(list, g)
		}
	}
	b, _ := json.Marshal(list) // numbers only
	return string(b)
}

// newRows selects the heads of groups, each with its rows after the known rev.
const newRows = `SELECT g.name, g.id, g.rev, g.epoch, x.* FROM jsonb_to_recordset(?1::jsonb) AS k(name text, id bigint, rev bigint)
	JOIN groups g ON g.name = k.name LEFT JOIN LATERAL (
		SELECT id, role, speaker, content, said, distilled, '' AS sources, NULL::bigint AS ended_by, 0::bigint AS until FROM messages WHERE grp = k.id AND rev > k.rev
		UNION ALL ` + factsToIndex + ` WHERE f.grp = k.id AND f.rev > k.rev) x ON g.id = k.id AND g.rev > k.rev ORDER BY g.id, x.id`

// news holds the head of a group and its changed rows.
type news struct {
	head
	rows  []indexedMessage
	ended map[int64]ending
	marks []int64
}

// look updates the indexes of groups with the commits of all processes, in one round trip.
func (e *Store) look(ctx context.Context, names ...string) error {
	if e.heads == nil {
		return nil
	}
	began := time.Now()
	all := make(map[string]*news, len(names))
	for _, name := range names {
		all[name] = &news{ended: make(map[int64]ending)}
	}
	err := e.db.Each(ctx, newRows, []any{e.asked(names)}, func(scan func(...any) error) error {
		var name string
		var h head
		var id, said, until sql.NullInt64
		var role, speaker, content, sources sql.NullString
		var distilled sql.NullBool
		var r rowToIndex
		err := scan(&name, &h.id, &h.rev, &h.epoch, &id, &role, &speaker, &content, &said, &distilled, &sources, &r.by, &until)
		f := all[name]
		f.head = h
		if err != nil || !id.Valid {
			return err
		}
		r.id, r.said, r.until, r.distilled = id.Int64, said.Int64, until.Int64, distilled.Bool
		r.role, r.speaker, r.content, r.sources = role.String, speaker.String, content.String, sources.String
		f.add(r.message())
		return nil
	})
	if err != nil {
		return fmt.Errorf("read new messages: %w", err)
	}
	for name, f := range all {
		e.follow(name, f, began)
	}
	return nil
}

// asked returns the known heads of groups as JSON. A group without an index needs no rows.
func (e *Store) asked(names []string) string {
	type ask struct {
		Name string `json:"name"`
		ID   int64  `json:"id"`
		Rev  int64  `json:"rev"`
	}
	list := make([]ask, 0, len(names))
	for _, name := range names {
		k := ask{Name: name, Rev: math.MaxInt64}
		e.heads.mu.Lock()
		h, ok := e.heads.of[name]
		e.heads.mu.Unlock()
		if ok && e.index.has(name) {
			k.ID, k.Rev = h.id, h.rev
		}
		list = append(list, k)
	}
	b, _ := json.Marshal(list) // names are text
	return string(b)
}

// add adds a row, which is new or has changed.
func (f *news) add(m indexedMessage) {
	f.rows = append(f.rows, m)
	switch {
	case m.claim != nil:
		f.ended[m.Place] = m.claim.ended
	case m.Note.Flags&isDistilled != 0:
		f.marks = append(f.marks, m.Place)
	}
}

// follow updates the index of a group. It ignores an older head that was read before the known one
// was stored. Any other older head proves that the database was restored from a backup.
func (e *Store) follow(name string, f *news, began time.Time) {
	e.heads.mu.Lock()
	defer e.heads.mu.Unlock()
	before, ok := e.heads.of[name]
	older := ok && before.id == f.id && (f.rev < before.rev || f.epoch < before.epoch)
	switch {
	case ok && before.head == f.head, older && began.Before(before.at):
		return
	case ok && before.id == f.id && before.epoch == f.epoch && !older:
		switch {
		case len(f.ended)+len(f.marks) > 0:
			e.index.Distilled(name, f.id, f.rows, f.ended, f.marks)
		case len(f.rows) > 0:
			e.index.Committed(name, f.id, f.rows)
		}
		if e.mean != nil {
			e.mean.groups.Remove(f.id) // there may be more of them
		}
	default:
		e.recent.drop()
		e.outlines.Remove(name)
		e.index.Deleted(name)
		if e.mean != nil {
			e.mean.forget(before.id)
		}
	}
	if len(e.heads.of) >= maxHeads {
		clear(e.heads.of)
	}
	e.heads.of[name] = known{f.head, time.Now()}
}
