package inject

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Snapshots stores texts by key. Forgetting one of a text's groups or sessions deletes it.
// Save drops a text if one of them has a newer generation. Load returns the latest text.
// Implementations must not retain the slices.
type Snapshots interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Save(ctx context.Context, key string, body []byte, generation int64, scopes ...string) error
}

// snapshot is the short-term memory of a session. It replaces history that the client has
// dropped.
type snapshot struct {
	Session string `json:"session,omitempty"` // hash of the session ID

	Tells   bool       `json:"tells,omitempty"`   // some message had a subject
	At      int64      `json:"at,omitempty"`      // Unix seconds of the last turn
	Asked   string     `json:"asked,omitempty"`   // the last message
	Decided string     `json:"decided,omitempty"` // the last message that states a change
	Tasks   []noteTask `json:"tasks,omitempty"`
	Files   []string   `json:"files,omitempty"`
	Errors  []string   `json:"errors,omitempty"`
}

const (
	snapshotChars = 700 // limit in a block
	maxDecided    = 300 // bytes; a longer message contains pasted text
)

// resumes begins the first line of a snapshot, and identifies blocks with a snapshot.
const resumes = "earlier in this session, asked: "

// add records a turn.
func (s *snapshot) add(n Note, said string) {
	s.Asked, s.At = noteLine(said), time.Now().Unix()
	s.Tells = s.Tells || words.Tells(s.Asked)
	if len(said) <= maxDecided && decides(said) {
		s.Decided = s.Asked
	}
	if n.Tasks != nil {
		s.Tasks = n.Tasks
	}
	for _, f := range n.Files {
		s.Files = latestOf(s.Files, f, maxNoteFiles)
	}
	s.Errors = n.Errors // earlier errors are fixed, or occur again
}

// decides reports whether a message states a change, and asks nothing. It ignores the first word: "now its
// tests" changes nothing.
func decides(said string) bool {
	_, rest, spaced := strings.Cut(strings.TrimSpace(said), " ")
	if !spaced {
		rest = said
	}
	return !words.HasQuestion(said) && words.States(said) && words.Changes(rest)
}

// lines returns the lines of a snapshot that fit, the most important first.
func (s *snapshot) lines(g Guard) (out []string) {
	room := snapshotChars
	s.each(func(text string) {
		l := lineOf(text)
		label := labelOf(l)
		said, ok := g.of(l[len(label):], false)
		if !ok {
			return
		}
		l = label + said
		if size := utf8.RuneCountInString(l) + len("- \n"); l != "" && size <= room {
			out, room = append(out, l), room-size
		}
	})
	return out
}

func (s *snapshot) each(add func(line string)) {
	if s.Asked == "" {
		return
	}
	add(resumes + s.Asked)
	for _, t := range s.Tasks {
		if !t.Done {
			add(openTask + t.Text)
		}
	}
	if len(s.Files) > 0 {
		add(filesTouched + strings.Join(s.Files, ", "))
	}
	for _, e := range s.Errors {
		add(errorMet + e)
	}
}

// The other line labels of a snapshot.
const (
	openTask     = "open task: "
	filesTouched = "files touched: "
	errorMet     = "error met: "
)

// SnapshotLines returns all lines of a snapshot and the hash of its session.
func SnapshotLines(body []byte) (lines []string, session string) {
	var s snapshot
	if json.Unmarshal(body, &s) == nil {
		s.each(func(line string) { lines = append(lines, line) })
	}
	return lines, s.Session
}

// SnapshotOf returns the snapshot with the given lines and session hash. It ignores unknown
// lines.
func SnapshotOf(lines []string, session string) []byte {
	s := snapshot{Session: session}
	for _, line := range lines {
		if asked, ok := strings.CutPrefix(line, resumes); ok {
			s.Asked = asked
		} else if task, ok := strings.CutPrefix(line, openTask); ok {
			s.Tasks = append(s.Tasks, noteTask{Text: task})
		} else if files, ok := strings.CutPrefix(line, filesTouched); ok {
			s.Files = strings.Split(files, ", ")
		} else if met, ok := strings.CutPrefix(line, errorMet); ok {
			s.Errors = append(s.Errors, met)
		}
	}
	body, _ := json.Marshal(s) // strings only
	return body
}

// snapshotID identifies a person's session in a workspace. Session IDs alone may repeat
// across people and workspaces.
func snapshotID(who graphiti.Who) TurnKey {
	sum := graphiti.Digest("snapshot", who.Tenant, who.User, who.SystemActor, who.Workspace, who.Session)
	return TurnKey(sum[:len(TurnKey{})])
}

func snapshotKey(who graphiti.Who) string { return snapshotID(who).String() }

// Remember adds a finished turn to the short-term memory of its session. work comes from
// NoteOf. Remember may wait for a file, so requests must not call it.
func (m *Planner) Remember(who graphiti.Who, generation int64, work []byte, said string) {
	if who.Session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(m.base, m.opts().Background)
	defer cancel()
	var s snapshot
	body, err := m.opts().Snapshots.Load(ctx, snapshotKey(who))
	if err != nil {
		m.opts().Log.Debug("read session snapshot failed", "error", err)
		return
	}
	_ = json.Unmarshal(body, &s) // an unreadable snapshot starts anew
	// Redact first: joined and truncated lines hide credentials from redaction.
	done, _ := m.opts().Redact(string(work), time.Time{})
	said, _ = m.opts().Redact(said, time.Time{})
	s.Session = graphiti.SessionHash(who.Session)
	s.add(ReadNote([]byte(done)), said)
	if body, err = json.Marshal(s); err != nil {
		return
	}
	scopes := []string{graphiti.SessionScope(who.Session, ""), graphiti.SessionScope(who.Session, who.Owner())}
	for _, t := range m.opts().Writes(who) {
		scopes = append(scopes, t.Group)
	}
	if err := m.opts().Snapshots.Save(ctx, snapshotKey(who), body, generation, scopes...); err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
		return
	}
	if s.Tells {
		m.rememberLast(ctx, who, generation, scopes)
	}
}

// resumed returns the lines of the session's snapshot if the client has compacted or
// dropped the history.
func (m *Planner) resumed(t *turn, who graphiti.Who) []string {
	if t.first || t.c.HeldElsewhere() || len(t.at) > 1 && !t.c.Summarised() {
		return nil
	}
	for _, b := range t.blocks() {
		if strings.Contains(b, "\n- "+resumes) {
			return nil
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), t.deadline)
	defer cancel()
	body, err := m.opts().Snapshots.Load(ctx, snapshotKey(who))
	var s snapshot
	if err != nil || body == nil || json.Unmarshal(body, &s) != nil || s.Asked == noteLine(string(t.c.Text(t.c.Last))) {
		return nil
	}
	return s.lines(m.opts().Guard)
}
