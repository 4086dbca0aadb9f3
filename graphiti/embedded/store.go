package embedded

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

//go:embed schema.sql
var schema string

// Store is a memory in a file of its own, or in a database that replicas share. It finds messages
// by their words, and needs no model.
type Store struct {
	db       database.DB
	heads    *heads // of a database that replicas share; nil for a file
	index    *indexes
	recent   *recentRows
	outlines outlines
	numbers  Numbers
	fit      *Fit
	mean     *vectors // nil: messages are found by their words alone
	distils  func()   // called after new messages; nil if no model distils facts
	copied   bool     // Graphiti gets copies of turns
	scratch  string   // path of a file that Close deletes; "" for none
}

// indexBytes is the default limit on the indexes of all groups in RAM.
const indexBytes = 64 << 20

// Open opens the store at path, and creates it if it does not exist.
func Open(path string) (*Store, error) { return open(path, sqlite.SyncFull) }

// OpenScratch opens an empty store at path, for copies of data. It deletes an existing
// store first, and new data need not survive the process. Close deletes the store.
func OpenScratch(path string) (*Store, error) {
	if err := remove(path); err != nil {
		return nil, err
	}
	e, err := open(path, sqlite.SyncNone)
	if err != nil {
		return nil, err
	}
	e.scratch = path
	return e, nil
}

func remove(path string) error {
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete %s: %w", path, err)
		}
	}
	return nil
}

func open(path string, s sqlite.Sync) (*Store, error) {
	db, err := sqlite.Open(path, sqlite.Options{Schema: schema + ledger.Schema, Version: 7, Sync: s,
		Holds: "all that the embedded memory has remembered"})
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	return newStore(db), nil
}

func newStore(db database.DB) *Store {
	e := &Store{db: db, recent: newRecentRows(), outlines: outlines{memo.NewLRU[string, *outline](maxOutlined)}, numbers: Fitted, fit: FitOf(sentence.Name)}
	e.index = newIndexes(e.indexed, indexBytes)
	return e
}

// Memory returns the store in all its roles.
func (e *Store) Memory() *graphiti.Memory {
	return &graphiti.Memory{Searcher: e, Writer: e, Lister: e, Forgetter: e, Connection: e, States: e.mayState}
}

// Embed makes statements searchable by meaning, too. It embeds existing and new ones in the
// background, at an endpoint. It is called once, before all other methods.
func (e *Store) Embed(o Embedding, log *slog.Logger) { e.mean = startVectors(e.db, o.encoder(), log) }

// Understand is Embed with a model in this process, and the numbers fitted to it.
func (e *Store) Understand(m Encoder, f *Fit, log *slog.Logger) {
	e.fit = f
	e.mean = startVectors(e.db, encoderOf(m, f), log)
}

// Limit sets the most bytes of the indexes of all groups in RAM. It is called once, before all
// other methods.
func (e *Store) Limit(indexBytes int) { e.index.limit = indexBytes }

// Pause stops or resumes sending texts to the endpoint of Embed. During the pause messages
// are found by their words alone.
func (e *Store) Pause(on bool) {
	if e.mean != nil {
		e.mean.pause(on)
	}
}

// Ledger returns the record of turns in the store's file. Recording a turn also stores it
// in the memory. say converts turns to messages.
func (e *Store) Ledger(say ledger.Say) *ledger.Ledger { return ledger.In(e.db, inFile{e}, say) }

// inFile is the store within a transaction of its ledger.
type inFile struct{ *Store }

// Write implements graphiti.Writer. It skips a message if the group already has its name.
func (e *Store) Write(ctx context.Context, group string, messages []graphiti.Row) error {
	return e.db.Write(ctx, func(tx *database.Tx) error {
		if err := e.lock(tx, group); err != nil {
			return err
		}
		return inFile{e}.Put(tx, group, messages)
	})
}

func (e inFile) Lock(tx *database.Tx, groups []string) error { return e.lock(tx, groups...) }

func (e inFile) Put(tx *database.Tx, group string, messages []graphiti.Row) error {
	to, err := endOf(tx, group)
	if err != nil {
		return err
	}
	var added []indexedMessage
	var ids []int64
	var rows []*row
	stored, err := e.insertAll(tx, to, messages)
	if err != nil {
		return err
	}
	for i := range messages {
		m, id := &messages[i], stored[i]
		if id != 0 {
			added = append(added, indexedAs(id&maxPlace, m.Role, m.Speaker, m.Text, m.Said))
			ids = append(ids, id)
			rows = append(rows, &row{name: m.Name, role: m.Role, speaker: m.Speaker, content: m.Text, said: time.UnixMilli(m.Said.UnixMilli())})
		}
		if id != 0 && e.Distils(m) {
			if err := queue(tx, id, m.Role, m.Source, m.Text); err != nil {
				return err
			}
		}
	}
	tx.Committed(func() {
		if e.heads == nil {
			e.index.Committed(group, to.group, added)
		}
		e.recent.committed(ids, rows)
		if e.mean != nil {
			e.mean.more(ids...)
		}
		if e.distils != nil {
			e.distils()
		}
	})
	return nil
}

// A message's id is its group's number and, in the lower bits, its place in the
// group.
const (
	placeBits = 32
	maxPlace  = 1<<placeBits - 1
)

// betweenConversations is the number of free places before another conversation, so that
// its messages are not neighbors of earlier messages.
const betweenConversations = 2*sameConversation + 1

// sameConversationFor is the most time between two messages of one conversation, if they
// name no session.
const sameConversationFor = time.Hour

// end is the end of a group, for writing the next message.
type end struct {
	group int64
	last  int64  // id
	talk  string // of the last message
	said  int64  // Unix milliseconds of the last message
}

// lastOf selects the id of the last message of a group g. Reading that message for each
// turn costs little: its page is written next anyway.
const lastOf = "(SELECT max(id) FROM messages WHERE id BETWEEN g.id << 32 AND g.id << 32 | 4294967295)"

// endOf returns the end of a group, and creates the group if it does not exist.
func endOf(tx *database.Tx, group string) (*end, error) {
	e, source, fact := &end{}, "", int64(0)
	err := tx.QueryRow("SELECT g.id, coalesce(m.id, g.id << 32), coalesce(m.source, ''), coalesce(m.said, 0), coalesce("+lastFact+", 0) FROM groups g LEFT JOIN messages m ON m.id = "+lastOf+" WHERE g.name = ?",
		group).Scan(&e.group, &e.last, &source, &e.said, &fact)
	e.talk = sessionIn(source)
	if fact > e.last {
		e.last, e.talk, e.said = fact, "", 0
	}
	if errors.Is(err, sql.ErrNoRows) {
		// Trying the insert each time would write the last assigned number each time.
		err = tx.QueryRow("INSERT INTO groups (name) VALUES (?) RETURNING id", group).Scan(&e.group)
		e.last = e.group << placeBits
	}
	return e, err
}

// insertAll writes messages, and returns their ids; 0 if the group already has the name.
func (e *Store) insertAll(tx *database.Tx, to *end, messages []graphiti.Row) (ids []int64, err error) {
	if e.heads != nil {
		return to.insertShared(tx, messages)
	}
	ids = make([]int64, len(messages))
	for i := range messages {
		m := &messages[i]
		if ids[i], err = to.insert(tx, m, m.Said.UnixMilli(), time.Now().UnixMilli()); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// next returns the id of a next message, and its conversation.
func (e *end) next(m *graphiti.Row, said int64) (id int64, talk string) {
	id, talk = e.last+1, sessionIn(m.Source)
	if talk != e.talk || talk == "" && (said-e.said > sameConversationFor.Milliseconds() || e.said-said > sameConversationFor.Milliseconds()) {
		id += betweenConversations
	}
	return id, talk
}

// insert writes a message, and returns its id; 0 if the group already has its name.
func (e *end) insert(tx *database.Tx, m *graphiti.Row, said, kept int64) (id int64, err error) {
	id, now := e.next(m, said)
	r, err := tx.Exec("INSERT INTO messages (id, grp, name, role, speaker, content, source, said, kept) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (grp, name) DO NOTHING",
		id, e.group, m.Name, string(m.Role), m.Speaker, m.Text, m.Source, said, kept)
	if err != nil {
		return 0, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return 0, err
	}
	e.last, e.talk, e.said = id, now, said
	return id, nil
}

// sessionIn returns the session that a message's source names.
func sessionIn(source string) string { return gjson.Get(source, "session").String() }

// plain returns the text of a message, without the form of a curated text.
func plain(content string) string {
	if c, ok := graphiti.ParseCurated(content); ok {
		return c.Text
	}
	return content
}

// group returns the number of a group; ok is false if the group does not exist.
func (e *Store) group(ctx context.Context, name string) (id int64, ok bool, err error) {
	err = e.db.QueryRow(ctx, "SELECT id FROM groups WHERE name = ?", []any{name}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("find group: %w", err)
	}
	return id, true, nil
}

func (e *Store) Health(ctx context.Context) error {
	var n int
	if err := e.db.QueryRow(ctx, "SELECT count(*) FROM (SELECT 1 FROM messages LIMIT 1) AS one", nil, &n); err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	return nil
}

// Fault returns the known damage of the file, or nil.
func (e *Store) Fault() *database.Fault { return e.db.Fault() }

// Check tests whether the file is usable, and returns its damage, or nil.
func (e *Store) Check() *database.Fault { return e.db.Check() }

// Apart implements graphiti.Writer.
func (e *Store) Apart() bool { return false }

func (e *Store) Close() error {
	e.index.Close()
	if e.mean != nil {
		e.mean.end()
	}
	err := e.db.Close()
	if e.scratch != "" {
		err = errors.Join(err, remove(e.scratch))
	}
	return err
}
