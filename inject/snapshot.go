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

// Snapshots keeps a text by key, for the groups and the sessions whose forgetting
// ends it. One is not kept where one of those has a newer generation. Load returns what
// an earlier Save has stored. Implementations must not retain the slices.
type Snapshots interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Save(ctx context.Context, key string, body []byte, generation int64, scopes ...string) error
}

// snapshot is the short-term memory of a session: what it was about, for when
// its client has dropped the history that says so.
type snapshot struct {
	Session string `json:"session,omitempty"` // its hash

	Tells   bool       `json:"tells,omitempty"`   // something was spoken of
	At      int64      `json:"at,omitempty"`      // Unix seconds, of the last turn
	Asked   string     `json:"asked,omitempty"`   // the last message
	Decided string     `json:"decided,omitempty"` // the last statement that something changed
	Tasks   []noteTask `json:"tasks,omitempty"`
	Files   []string   `json:"files,omitempty"`
	Errors  []string   `json:"errors,omitempty"`
}

const (
	snapshotChars = 700 // of a block that a snapshot may take
	maxDecided    = 300 // bytes of a message that says what was decided: more was pasted
)

// resumes begins the lines of a snapshot; a block that has it has one.
const resumes = "earlier in this session, asked: "

// add takes a turn in.
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
	s.Errors = n.Errors // those of earlier turns have been dealt with, or come again
}

// decides reports whether a message states that something changed. Its first word does not
// count: "now its tests" goes on.
func decides(said string) bool {
	_, rest, spaced := strings.Cut(strings.TrimSpace(said), " ")
	if !spaced {
		rest = said
	}
	return words.States(said) && words.Changes(rest)
}

// lines are what is shown of a snapshot: the more important first, as many as
// there is room for.
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

// How the lines of a snapshot begin, beside resumes.
const (
	openTask     = "open task: "
	filesTouched = "files touched: "
	errorMet     = "error met: "
)

// SnapshotLines returns all lines of a snapshot, and the hash of its session.
func SnapshotLines(body []byte) (lines []string, session string) {
	var s snapshot
	if json.Unmarshal(body, &s) == nil {
		s.each(func(line string) { lines = append(lines, line) })
	}
	return lines, s.Session
}

// SnapshotOf returns the snapshot of lines, for the session with that hash. It leaves
// out lines that no snapshot has.
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

// snapshotID names a person's session in a workspace: others may use the same
// id, and the person may use it elsewhere.
func snapshotID(who graphiti.Who) TurnKey {
	sum := graphiti.Digest("snapshot", who.Tenant, who.User, who.SystemActor, who.Workspace, who.Session)
	return TurnKey(sum[:len(TurnKey{})])
}

func snapshotKey(who graphiti.Who) string { return snapshotID(who).String() }

// Remember adds a finished turn of a generation to the short-term memory of its session.
// work is the part of the body that says what was done. It may wait for a file, so no
// request may call it.
func (m *Memory) Remember(who graphiti.Who, generation int64, work []byte, said string) {
	if who.Session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(m.base, m.opts().Background)
	defer cancel()
	var s snapshot
	body, err := m.opts().Snapshots.Load(ctx, snapshotKey(who))
	if err != nil {
		m.opts().Log.Debug("a session's snapshot cannot be read", "error", err)
		return
	}
	_ = json.Unmarshal(body, &s) // one that cannot be read begins anew
	// Before lines are joined and cut: then a credential is not known any more.
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
		m.opts().Log.Debug("a session's snapshot cannot be written", "error", err)
		return
	}
	if s.Tells {
		m.rememberLast(ctx, who, generation, scopes)
	}
}

// resumed are the lines of the session's snapshot, where the conversation does
// not show what came before: its client has compacted it, or dropped it.
func (m *Memory) resumed(t *turn, who graphiti.Who) []string {
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
