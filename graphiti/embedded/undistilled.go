package embedded

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	// batchChars is the number of characters after which a batch ends, before the next message
	// of the person. maxBatchChars bounds a batch, and maxBatchMessage each of its messages.
	batchChars      = 8000
	maxBatchChars   = 16000
	maxBatchMessage = 3000

	// A batch has at most maxKnown valid facts: those that share the rarest words with the
	// messages, and newestKnown of the newest.
	maxKnown    = 32
	newestKnown = 8

	maxTries = 6 // attempts to distil a message
)

// Distil makes the store queue new messages for a model, and calls wake after each commit.
// It is called once, before messages are written.
func (e *Store) Distil(wake func()) { e.distils = wake }

// freshFor is the age up to which a message is distilled. Imports and restored exports are
// older, and the person did not ask to send them to a model.
const freshFor = 24 * time.Hour

// Distils reports whether the store queues a new message for a model: there is one, and the message
// is not imported, promoted or from no conversation.
func (e *Store) Distils(m *graphiti.Row) bool {
	return e.distils != nil && m.Speaker == "" && m.Role != graphiti.RoleSystem && sessionIn(m.Source) != "" &&
		gjson.Get(m.Source, "client").Str != "import" && !gjson.Get(m.Source, "import").Exists() && time.Since(m.Said) <= freshFor
}

// Copied makes turns wait to be copied to Graphiti once they have facts. It is called once, before all
// other methods.
func (e *Store) Copied() { e.copied = true }

// copyTurns makes turns wait to be copied to Graphiti, if there is one: the turns of messages whose facts
// are known, or that the model could not read.
func (e *Store) copyTurns(tx *database.Tx, messages []int64) error {
	for _, id := range messages {
		var name, group string
		err := tx.QueryRow("SELECT m.name, g.name FROM messages m JOIN groups g ON g.id = m.grp WHERE m.id = ?", id).Scan(&name, &group)
		if turn, ok := graphiti.TurnOf(name); ok && err == nil && e.copied {
			_, err = tx.Exec("UPDATE turns SET state = 'pending' WHERE turn = ? AND grp = ? AND state = 'delivered' AND sends = 0 AND sent = 0", turn, group)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

// betweenProviders separates a session from a provider in the table undistilled.
const betweenProviders = " "

func queue(tx *database.Tx, id int64, role graphiti.RoleType, source, content string) error {
	session := sessionIn(source)
	if session == "" || role == graphiti.RoleSystem {
		return nil
	}
	if provider := gjson.Get(source, "provider").Str; provider != "" { // each provider has its own queue
		session += betweenProviders + provider
	}
	_, err := tx.Exec("INSERT INTO undistilled (id, session, kept, chars) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", id, session, time.Now().UnixMilli(), utf8.RuneCountInString(content))
	return err
}

// QueueDistilled implements graphiti.Distiller.
func (e *Store) QueueDistilled(ctx context.Context, group string, names []string) error {
	err := e.db.Write(ctx, func(tx *database.Tx) error {
		for _, name := range names {
			var id int64
			var role, source, content string
			err := tx.QueryRow("SELECT m.id, m.role, m.source, m.content FROM messages m JOIN groups g ON g.id = m.grp WHERE g.name = ? AND m.name = ? AND m.distilled = 0",
				group, name).Scan(&id, &role, &source, &content)
			if err == nil {
				err = queue(tx, id, graphiti.RoleType(role), source, content)
			}
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		if e.distils != nil {
			tx.Committed(e.distils)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("queue messages to distil: %w", err)
	}
	return nil
}

// Undistilled returns the next batch of a conversation that has been quiet, or has grown by
// chars. Without one, it returns nil and the time at which there may be one, or zero.
func (e *Store) Undistilled(ctx context.Context, quiet time.Duration, chars int) (b *graphiti.Batch, next time.Time, err error) {
	now := time.Now()
	session := ""
	err = e.db.Each(ctx, "SELECT session, sum(chars), max(kept), max(again) FROM undistilled GROUP BY session ORDER BY min(id)", nil, func(scan func(...any) error) error {
		var of string
		var size, kept, again int64
		if err := scan(&of, &size, &kept, &again); err != nil {
			return err
		}
		due := time.UnixMilli(kept).Add(quiet)
		if size >= int64(chars) {
			due = time.UnixMilli(kept)
		}
		if later := time.UnixMilli(again); later.After(due) {
			due = later
		}
		switch {
		case due.After(now):
			if next.IsZero() || due.Before(next) {
				next = due
			}
		case session == "":
			session = of
		}
		return nil
	})
	if err == nil && session != "" {
		b, err = e.batch(ctx, session)
	}
	if err != nil {
		return nil, next, fmt.Errorf("find messages to distil: %w", err)
	}
	return b, next, nil
}

// batch reads the oldest messages of a conversation with one provider: those in the group that
// has most of them.
func (e *Store) batch(ctx context.Context, session string) (*graphiti.Batch, error) {
	of, provider, _ := strings.Cut(session, betweenProviders)
	b := &graphiti.Batch{Session: session, Provider: provider}
	var group int64
	err := e.db.QueryRow(ctx, `SELECT m.grp, g.name, max(u.tries), coalesce((SELECT key FROM owners WHERE grp = g.name AND scope = 'workspace' LIMIT 1), ''),
		(SELECT CASE WHEN count(DISTINCT owner) > 1 THEN 'session ' || ?2 ELSE coalesce(max(owner), '') END FROM sessions WHERE session = ?2)
		FROM undistilled u JOIN messages m ON m.id = u.id JOIN groups g ON g.id = m.grp WHERE u.session = ?1
		GROUP BY m.grp, g.name ORDER BY count(*) DESC, m.grp LIMIT 1`, []any{session, of}, &group, &b.Group, &b.Tries, &b.Project, &b.Owner)
	if err != nil {
		return nil, err
	}
	if b.Project != "" {
		b.Project = path.Base(strings.ReplaceAll(b.Project, "\\", "/"))
	}
	size := 0
	err = e.db.Each(ctx, "SELECT m.id, m.name, m.role, m.content, m.said FROM undistilled u JOIN messages m ON m.id = u.id WHERE u.session = ? AND m.grp = ? ORDER BY u.id",
		[]any{session, group}, func(scan func(...any) error) error {
			var m graphiti.Undistilled
			var said int64
			if err := scan(&m.ID, &m.Name, &m.Role, &m.Text, &said); err != nil {
				return err
			}
			m.Text = graphiti.ShortenMiddle(m.Text, " … ", maxBatchMessage)
			n := utf8.RuneCountInString(m.Text)
			if size+n > maxBatchChars || size > batchChars && m.Role == graphiti.RoleUser {
				size = maxBatchChars
				return nil
			}
			size += n
			m.Said = time.UnixMilli(said)
			b.Messages = append(b.Messages, m)
			return nil
		})
	if err == nil {
		b.Known, err = e.knownFacts(ctx, b)
	}
	return b, err
}

// knownFacts returns the valid facts of a batch's group that it may repeat or replace.
func (e *Store) knownFacts(ctx context.Context, b *graphiti.Batch) ([]graphiti.Distilled, error) {
	said := make(map[string]bool)
	for i := range b.Messages {
		words.Each(b.Messages[i].Text, func(w []byte, k words.Significance) bool {
			if k != words.Function {
				said[string(w)] = true
			}
			return true
		})
	}
	type rated struct {
		fact   graphiti.Distilled
		shared []string
		score  float64
		number int
	}
	var all []rated
	often := make(map[string]int)
	err := e.eachFact(ctx, b.Group, true, func(d *graphiti.Distilled) error {
		r := rated{fact: *d, number: len(all)}
		for _, w := range words.Of(d.Text+"\n"+d.About+"\n"+strings.Join(d.Keys, "\n"), maxWords) {
			if said[w] {
				r.shared = append(r.shared, w)
				often[w]++
			}
		}
		all = append(all, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		for _, w := range all[i].shared {
			all[i].score += 1 / float64(often[w])
		}
	}
	for i := range all {
		if all[i].fact.OfUser() { // they are few, and another language may replace them
			all[i].score++
		}
	}
	newest := all[max(0, len(all)-newestKnown):]
	for i := range newest {
		newest[i].score++
	}
	slices.SortStableFunc(all, func(a, b rated) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.number, a.number)) })
	var out []graphiti.Distilled
	for i := range all[:min(len(all), maxKnown)] {
		if all[i].score > 0 {
			out = append(out, all[i].fact)
		}
	}
	return out, nil
}

// Postpone repeats a batch after a time. Its messages are given up after maxTries failed
// calls of the model.
func (e *Store) Postpone(ctx context.Context, b *graphiti.Batch, until time.Time, failed bool) error {
	err := e.db.Write(ctx, func(tx *database.Tx) error {
		if _, err := tx.Exec("UPDATE undistilled SET again = ? WHERE session = ?", until.UnixMilli(), b.Session); err != nil {
			return err
		}
		for i := range b.Messages {
			if !failed {
				break
			}
			if _, err := tx.Exec("UPDATE undistilled SET tries = tries + 1 WHERE id IN (SELECT id FROM messages WHERE name = ? AND grp IN (SELECT DISTINCT m.grp FROM undistilled u JOIN messages m ON m.id = u.id WHERE u.session = ?))",
				b.Messages[i].Name, b.Session); err != nil {
				return err
			}
		}
		lost, err := column[int64](tx, "DELETE FROM undistilled WHERE session = ? AND tries >= ? RETURNING id", b.Session, maxTries)
		if err == nil {
			err = e.copyTurns(tx, lost)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("postpone distilling: %w", err)
	}
	return nil
}
