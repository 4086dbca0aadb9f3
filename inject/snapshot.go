package inject

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
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

	Tells   bool     `json:"tells,omitempty"`   // some message had a subject
	At      int64    `json:"at,omitempty"`      // Unix seconds of the last turn
	Asked   string   `json:"asked,omitempty"`   // the last message
	Decided []string `json:"decided,omitempty"` // the last messages that state a change, the latest last
	Files   []string `json:"files,omitempty"`

	Listed struct { // by the client's summary of the session, the latest last
		About   string   `json:"about,omitempty"`
		Decided []string `json:"decided,omitempty"`
		Open    []string `json:"open,omitempty"`
	} `json:"listed,omitzero"`
	Children []child `json:"children,omitempty"` // subagents, the latest last
	Work     tasks   `json:"work,omitzero"`
}

// tasks is the agent's last list.
type tasks struct {
	Tasks []dialect.Task `json:"tasks,omitempty"`
}

const (
	snapshotChars = 700 // limit in a block
	maxNoteFiles  = 10
	noteLength    = 160 // characters of a line
	maxDecided    = 300 // bytes; a longer message contains pasted text
	maxDecisions  = 4
)

// resumes begins the first line of a snapshot.
const resumes = "earlier in this session, asked: "

// add records a turn. decided reports whether its message states a decision.
func (s *snapshot) add(said string, decided bool) {
	if s.At = time.Now().Unix(); said != "" { // empty if a client wrote the message
		s.Asked = noteLine(said)
	}
	s.Tells = s.Tells || words.Tells(s.Asked)
	if decided {
		s.Decided = latestOf(s.Decided, s.Asked, maxDecisions)
	}
}

// latestOf moves or adds s to the end of a list and drops the oldest items.
func latestOf(list []string, s string, most int) []string {
	list = append(slices.DeleteFunc(list, func(o string) bool { return o == s }), s)
	return list[max(0, len(list)-most):]
}

// noteLine returns a text as one line of limited length.
func noteLine(s string) string { return graphiti.OneLine(s, noteLength) }

// lines returns the lines of a snapshot that fit, the most important first.
func (s *snapshot) lines(room int) (out []string) {
	s.each(func(text string) {
		l := lineOf(text)
		label := labelOf(l)
		if l == label {
			return
		}
		l = label + quoted(l[len(label):])
		if size := utf8.RuneCountInString(l) + len("- \n"); l != "" && size <= room {
			out, room = append(out, l), room-size
		}
	})
	return out
}

func (s *snapshot) each(add func(line string)) {
	if s.Asked != "" {
		add(resumes + s.Asked)
	}
	for _, d := range s.Decided {
		if d != s.Asked {
			add(decisionMade + d)
		}
	}
	for _, task := range s.open() {
		add(openTask + task)
	}
	for _, o := range s.Listed.Open {
		add(listedOpen + o)
	}
	for _, d := range s.Listed.Decided {
		add(listedDecision + d)
	}
	for _, c := range slices.Backward(s.Children) {
		add(subagentAsked + c.Asked + answeredSo + c.Result)
	}
	if len(s.Files) > 0 {
		add(filesTouched + strings.Join(s.Files, ", "))
	}
}

// The other line labels of a snapshot.
const (
	decisionMade   = "decided: "
	openTask       = "open task: "
	listedOpen     = "open, by the client's summary: "
	listedDecision = "decided, by the client's summary: "
	subagentAsked  = "subagent asked: "
	answeredSo     = "; answered: "
	filesTouched   = "files changed: "
)

// labels are the labels of lines.
var labels = []string{resumes, decisionMade, openTask, listedOpen, listedDecision, subagentAsked, filesTouched}

// SnapshotLines returns all lines of a snapshot.
func SnapshotLines(body []byte) (lines []string) {
	var s snapshot
	if json.Unmarshal(body, &s) == nil {
		s.each(func(line string) { lines = append(lines, line) })
	}
	return lines
}

// snapshotID identifies a person's session in a workspace. Session IDs alone may repeat
// across people and workspaces.
func snapshotID(who graphiti.Who) TurnKey {
	sum := graphiti.Digest("snapshot", who.Tenant, who.User, who.SystemActor, who.Workspace, who.Session)
	return TurnKey(sum[:len(TurnKey{})])
}

func snapshotKey(who graphiti.Who) string { return snapshotID(who).String() }

// note changes the short-term memory of a session.
func (m *Planner) note(ctx context.Context, who graphiti.Who, generation int64, change func(*snapshot)) error {
	// A session's agents end their turns at the same time.
	lock := &m.noting[int(snapshotID(who)[0])%len(m.noting)]
	lock.Lock()
	defer lock.Unlock()
	body, err := m.opts().Snapshots.Load(ctx, snapshotKey(who))
	if err != nil {
		return err //nolint:wrapcheck // the caller names the action
	}
	var s snapshot
	_ = json.Unmarshal(body, &s) // an unreadable snapshot starts anew
	s.Session = graphiti.SessionHash(who.Session)
	change(&s)
	if body, err = json.Marshal(s); err != nil {
		return err //nolint:wrapcheck // the caller names the action
	}
	return m.opts().Snapshots.Save(ctx, snapshotKey(who), body, generation, m.scopes(who)...) //nolint:wrapcheck // the caller names the action
}

// scopes returns the forget scopes of a session's notes.
func (m *Planner) scopes(who graphiti.Who) []string {
	scopes := []string{graphiti.SessionScope(who.Session, ""), graphiti.SessionScope(who.Session, who.Owner())}
	for _, t := range m.opts().Writes(who) {
		scopes = append(scopes, t.Group)
	}
	return scopes
}

// resumed returns the lines of the session's notes that neither the conversation nor other lines
// of the block contain. It returns none unless the client has just dropped the history.
func (m *Planner) resumed(t *turn, who graphiti.Who, others []string) []string {
	if t.first || !t.cut() {
		return nil
	}
	s := m.sessionNotes(t, who)
	if !t.c.Resumes() && s.Asked == noteLine(string(t.c.Text(t.c.Last))) {
		return nil
	}
	isSaid, visible := said(t.c), statementsIn(t.blocks())
	return withoutRepeats(slices.DeleteFunc(s.lines(t.o.MaxChars), func(l string) bool {
		return visible.has(l) || isSaid(l)
	}), others)
}

// sessionNotes returns the short-term memory of the turn's session.
func (m *Planner) sessionNotes(t *turn, who graphiti.Who) (s snapshot) {
	ctx, cancel := context.WithDeadline(context.Background(), t.deadline)
	defer cancel()
	body, err := t.o.Snapshots.Load(ctx, snapshotKey(who))
	if err != nil {
		t.o.Log.Debug("read session snapshot failed", "error", err)
		return snapshot{}
	}
	_ = json.Unmarshal(body, &s) // an unreadable snapshot is empty
	return s
}
