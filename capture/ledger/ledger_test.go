package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// Open opens a ledger in a file of its own, with messages in RAM.
func Open(path string) (*Ledger, error) {
	db, err := sqlite.Open(path, sqlite.Options{Schema: Schema, Version: 5, Sync: sqlite.SyncFull, Holds: "turns"})
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return &Ledger{db: db, worth: func(*Turn) bool { return true }, memory: &shelf{db: db}, say: saying}, nil
}

// saying returns a message with the answer of a turn.
func saying(t *Turn, _ graphiti.Scope) []graphiti.Row {
	return []graphiti.Row{{Name: graphiti.EpisodeName(t.ID, graphiti.RoleUser), Text: t.Assistant, Source: `{"session":"` + t.OfSession() + `"}`}}
}

// TestSpoolThatCannotBeRead checks that Open leaves a file that is not a database
// unchanged, and that its error states this.
func TestSpoolThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	garbage := strings.Repeat("not a database ", 1000)
	must(t, os.WriteFile(path, []byte(garbage), 0o600))
	_, err := Open(path)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "it is unchanged") {
		t.Errorf("got %v, want an error that names %s and says that it is unchanged", err, path)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != garbage {
		t.Error("the file was changed")
	}
}

// TestSpoolOfAnotherVersion checks that Open refuses a spool with another schema version.
func TestSpoolOfAnotherVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool.db")
	db, err := sqlite.Open(path, sqlite.Options{Schema: "CREATE TABLE x (y)", Version: 99, Sync: sqlite.SyncFull})
	must(t, err)
	must(t, db.Close())
	var fault *database.Fault
	if _, err = Open(path); !errors.As(err, &fault) || fault.Kind != database.Other {
		t.Errorf("got %v, want a fault of another kind", err)
	}
}

// TestSeenIsBounded checks that Prune limits delivered turns by age and number.
func TestSeenIsBounded(t *testing.T) {
	s, err := openAny(t)
	must(t, err)
	defer s.Close()
	now := time.Now()
	for i := range 10 {
		tn := turn(fmt.Sprint(i), "g")
		must(t, helptest.ErrorOf(s.Add(context.Background(), []Turn{tn}, now)))
		entries, err := s.Next(context.Background(), "g", 1)
		must(t, err)
		must(t, s.MarkDelivered(&entries[0], true))
		err = s.write("age", func(tx *database.Tx) error {
			return run(tx, "UPDATE turns SET at = ? WHERE seq = ?", now.Add(-time.Duration(9-i)*20*24*time.Hour).UnixMilli(), entries[0].Seq)
		})
		must(t, err)
	}
	left := func() (n int) {
		must(t, s.db.QueryRow(context.Background(), "SELECT count(*) FROM turns", nil, &n))
		return n
	}
	if err := s.Prune(now, 100); err != nil || left() != 5 {
		t.Errorf("%d are left, %v", left(), err)
	}
	if err := s.Prune(now, 2); err != nil || left() != 2 {
		t.Errorf("%d are left, %v", left(), err)
	}
}

// TestALongQueueIsNotReadAsAWhole checks that the queries of a full queue and of a forget use SQL
// indexes, so that their cost depends neither on the length of the queue nor on earlier forgets.
func TestALongQueueIsNotReadAsAWhole(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "spool.db"))
	must(t, err)
	defer s.Close()
	for statement, want := range map[string]string{
		copyColumns + "WHERE " + next:                           "SCAN turns USING INDEX turns_next",
		copyColumns + "WHERE grp = 'g' AND " + next:             "SEARCH turns USING INDEX turns_pending (grp=?)",
		copyColumns + "WHERE state = 'sent' ORDER BY sent, seq": "SCAN turns USING INDEX turns_sent",
		spared: "SEARCH turns USING INDEX turns_digest (grp=? AND <expr>=?)",
		"SELECT imported FROM turns WHERE grp = ?1 AND " + anyState + " AND digest = ?2": "SEARCH turns USING INDEX turns_digest (grp=? AND <expr>=? AND digest=?)",
		unproven:                           "SEARCH turns USING INDEX turns_digest (grp=? AND <expr>=?)",
		forgetTurns + "AND turn = ?3":      "SEARCH turns USING INDEX sqlite_autoindex_turns_1 (turn=? AND grp=?)",
		forgetTurns + "AND generation < 1": "SEARCH turns USING INDEX turns_digest (grp=? AND <expr>=?)",
	} {
		found := false
		err := each(context.Background(), s.db, "EXPLAIN QUERY PLAN "+strings.NewReplacer("?1", "'g'", "?2", "1", "?3", "'o'", "LIMIT ?", "LIMIT 1").Replace(statement), nil, func(scan func(...any) error) error {
			var id, parent, unused int
			var step string
			err := scan(&id, &parent, &unused, &step)
			if found = found || step == want; strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s: got %s, want no \"TEMP B-TREE\" in it", statement, step)
			}
			return err
		})
		if err != nil || !found {
			t.Errorf("%s: got %v, want no error, and an index that is used", statement, err)
		}
	}
}

func turn(id string, groups ...string) Turn {
	tn := Turn{ID: id, User: "user " + id, Said: time.Now(), Answered: time.Now()}
	for _, g := range groups {
		tn.Targets = append(tn.Targets, graphiti.Target{Scope: graphiti.ScopeUser, Group: g})
	}
	return tn
}

func spoken(id string, groups ...string) Turn {
	tn := turn(id, groups...)
	tn.Assistant = "assistant " + id
	return tn
}
