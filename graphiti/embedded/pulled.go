package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/sjson"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Pull stores facts that Graphiti read from an episode, whose messages are their sources. A
// known fact gets further sources, or its end. A fact without a source only ends.
func (e *Store) Pull(ctx context.Context, group string, facts []graphiti.Distilled) error {
	err := e.db.Write(ctx, func(tx *database.Tx) error {
		if err := database.Led(e.db, tx); err != nil {
			return err
		}
		k := keeper{Store: e, tx: tx, now: time.Now()}
		to, err := k.openGroup(group)
		if errors.Is(err, sql.ErrNoRows) { // forgotten meanwhile
			return nil
		}
		for i := range facts {
			if err == nil {
				err = to.pull(&facts[i])
			}
		}
		to.commit()
		return err
	})
	if err != nil {
		return fmt.Errorf("store facts of Graphiti: %w", err)
	}
	return nil
}

func (g *factGroup) pull(f *graphiti.Distilled) error {
	var id, from, until int64
	err := g.tx.QueryRow("SELECT id, valid_from, coalesce(valid_until, 0) FROM facts WHERE grp = ? AND name = ?", g.group, f.Name).Scan(&id, &from, &until)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return g.pullNew(f)
	case err != nil:
		return err
	}
	again := false // the fact has a new source
	for _, source := range f.Sources {
		added, err := column[int64](g.tx, "INSERT INTO fact_sources SELECT ?, id FROM messages WHERE grp = ? AND name = ? ON CONFLICT DO NOTHING RETURNING fact", id, g.group, source)
		if err != nil {
			return err
		}
		again = again || len(added) > 0
	}
	if err := g.readAll(f); err != nil {
		return err
	}
	end := f.Until
	if again && until > 0 || !end.IsZero() {
		// A source newer than the end repeats the fact: the value is valid again.
		var last int64
		err := g.tx.QueryRow("SELECT CASE WHEN count(*) > 1 THEN max(m.said) ELSE 0 END FROM fact_sources s JOIN messages m ON m.id = s.message WHERE s.fact = ? AND m.role <> 'assistant'", id).Scan(&last)
		switch {
		case err != nil:
			return err
		case last > max(until, end.UnixMilli()):
			if ended := max(until, end.UnixMilli()); from < ended { // else it is back already
				if err := g.back(id, f.Text, ended, last); err != nil {
					return err
				}
				again = true
			}
			end = time.Time{}
		case end.IsZero(): // the person has ended it
			return nil
		}
	}
	if end.IsZero() && !again || !end.IsZero() && end.UnixMilli() == until {
		return nil
	}
	g.ended[id&maxPlace] = ending{at: end}
	_, err = g.tx.Exec("UPDATE facts SET valid_until = ? WHERE id = ?", millis(end), id)
	return err
}

// back makes a fact begin again, and ends its replacement: of the facts that began at its end, the
// one with the most alike text. Graphiti does not.
func (g *factGroup) back(id int64, text string, end, at int64) error {
	others, err := column[string](g.tx, "SELECT id || ' ' || text FROM facts WHERE grp = ? AND valid_from = ? AND valid_until IS NULL AND id <> ? AND name LIKE '"+graphiti.PulledPrefix+"%'", g.group, end, id)
	if err != nil {
		return err
	}
	form, between, best := formOf(text), int64(0), -1.0
	for _, o := range others {
		number, says, _ := strings.Cut(o, " ")
		other := formOf(says)
		if like := form.like(&other); like > best {
			if between, err = strconv.ParseInt(number, 10, 64); err != nil {
				return err
			}
			best = like
		}
	}
	if between > 0 {
		g.ended[between&maxPlace] = ending{at: time.UnixMilli(at)}
	}
	_, err = g.tx.Exec("UPDATE facts SET valid_until = CASE WHEN id = ?1 THEN valid_until ELSE ?2 END, valid_from = CASE WHEN id = ?1 THEN ?2 ELSE valid_from END WHERE id IN (?1, ?3)", id, at, between)
	return err
}

// forgetPulled records in the ledger that a fact of Graphiti was forgotten: Graphiti may list it
// again.
const forgetPulled = `INSERT INTO turns (turn, grp, state, digest, at)
	SELECT f.name, g.name, 'forgotten', '', ?2 FROM facts f JOIN groups g ON g.id = f.grp WHERE f.id = ?1 AND f.name LIKE '` + graphiti.PulledPrefix + `%'
	ON CONFLICT (turn, grp) DO UPDATE SET state = excluded.state, digest = '', at = excluded.at`

func (g *factGroup) pullNew(f *graphiti.Distilled) (err error) {
	var forgotten bool
	err = g.tx.QueryRow("SELECT EXISTS (SELECT 1 FROM turns WHERE turn = ? AND grp = ? AND state = 'forgotten')", f.Name, g.name).Scan(&forgotten)
	if len(f.Sources) == 0 || forgotten || err != nil {
		return err
	}
	if f.Owner, err = g.ownerOf(g.group, f.Sources); err != nil {
		return err
	}
	stored, err := g.add(f)
	if !stored {
		return err
	}
	return g.readAll(f)
}

// readAll marks the messages of a fact as distilled: their facts answer in their place. Their sources get
// the fact's episode.
func (g *factGroup) readAll(f *graphiti.Distilled) error {
	for _, name := range f.Sources {
		if err := g.read(name); err != nil {
			return err
		}
		if f.Episode == "" {
			continue
		}
		source, err := column[string](g.tx, "SELECT source FROM messages WHERE grp = ? AND name = ?", g.group, name)
		for _, s := range source {
			if s, err = sjson.Set(s, "episode", f.Episode); err == nil {
				_, err = g.tx.Exec("UPDATE messages SET source = ? WHERE grp = ? AND name = ?", s, g.group, name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
