package inject

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Opening provides the card. Its calls delay the request.
type Opening interface {
	// Standing returns the caller's card, the most important entries first.
	Standing(ctx context.Context, who graphiti.Who) ([]graphiti.Fact, error)
}

// lastDecided is a label in the line about the last conversation.
const lastDecided = "decided: "

// Bounds of the line about the last conversation, in characters and files.
const (
	leftOffChars = 300
	leftFiles    = 3 // changed files in it
	leftPoints   = 3 // open points of the client's summary in it
)

// opening returns the standing lines of a block: in a new conversation the card and the
// previous conversation, after a compaction the card and the session's snapshot. Only
// lines of the card have a Fact.
func (m *Planner) opening(t *turn, who graphiti.Who) (opening []Candidate) {
	o := m.opts()
	room := o.room(t) - utf8.RuneCountInString(blockOpen+blockFrame+standingLabel+recalledLabel+blockClose)
	count := o.MaxFacts
	add := func(list []Candidate, chars int) {
		for _, c := range list {
			if size := utf8.RuneCountInString(c.Line) + len("- \n"); size <= min(room, chars) && count > 0 {
				opening, room, chars, count = append(opening, c), room-size, chars-size, count-1
			}
		}
	}
	if t.begins() {
		ctx, cancel := context.WithDeadline(context.Background(), t.deadline)
		defer cancel()
		add(m.card(ctx, t, who), o.CardChars)
		t.found = m.leftOff(ctx, t, who)
		add(notes(t.found), leftOffChars)
	}
	add(notes(m.resumed(t, who, linesOfAll(opening))), snapshotChars)
	return opening
}

// notes makes candidates of snapshot lines.
func notes(lines []string) (list []Candidate) {
	for _, l := range lines {
		list = append(list, Candidate{Line: l, Verdict: Shown})
	}
	return list
}

// Later blocks of a conversation add to the first. They get this share of MaxChars, or
// laterChars if that is more.
const (
	laterPart  = 0.4
	laterChars = 1000
)

// room returns the maximum number of characters of a turn's block.
func (o *options) room(t *turn) int {
	most := o.MaxChars
	if !t.begins() {
		most = max(min(most, laterChars), int(laterPart*float64(most)))
	}
	return min(most, roomIn(t.c.Model, o.Share, o.Window))
}

// begins reports whether the conversation starts with this turn, or restarts with it after a
// compaction that leaves no earlier decisions.
func (t *turn) begins() bool {
	for _, d := range t.earlier[:max(0, len(t.earlier)-1)] {
		if d != nil {
			return false
		}
	}
	return t.cut()
}

// cut reports whether this is the conversation's first turn, or the first one after the client
// has replaced the history. It is false if the provider may hold a history.
func (t *turn) cut() bool {
	if t.c.HeldElsewhere() {
		return false
	}
	at := t.c.SummaryAt()
	return len(t.at) <= 1 || t.mode.Cut || at >= 0 && t.at[len(t.at)-2] <= at
}

// card returns the visible entries of the card. It adds their groups to the turn, because
// forgetting one of them empties the block.
func (m *Planner) card(ctx context.Context, t *turn, who graphiti.Who) (shown []Candidate) {
	if m.opts().CardChars <= 0 {
		return nil
	}
	facts, err := m.opts().Opening.Standing(ctx, who)
	if err != nil {
		m.opts().Log.Warn("read card failed", "error", err)
		return nil
	}
	ch := chooserOf(t)
	ch.laid = true
	for i := range facts {
		if c := ch.look(&facts[i], ""); c.Verdict == Shown {
			shown = append(shown, c)
			t.groups = append(t.groups, facts[i].Group)
		}
	}
	return shown
}

// last identifies a person's latest session in a project.
type last struct {
	Session string `json:"session"` // hash of the session ID
	Key     string `json:"key"`     // snapshot key
}

func lastKey(who graphiti.Who) string {
	sum := graphiti.Digest("last session", who.Tenant, who.User, who.SystemActor, who.Workspace)
	return TurnKey(sum[:len(TurnKey{})]).String()
}

// rememberLast records the latest session of a project with a decision, changed files or open
// points. scopes are the scopes of the session's snapshot.
func (m *Planner) rememberLast(ctx context.Context, who graphiti.Who, generation int64, scopes []string) {
	if !inProject(m.opts().Writes(who)) {
		return
	}
	var before last
	now := last{graphiti.SessionHash(who.Session), snapshotKey(who)}
	body, err := m.opts().Snapshots.Load(ctx, lastKey(who))
	if err == nil && body != nil && json.Unmarshal(body, &before) == nil && before == now {
		return
	}
	body, _ = json.Marshal(now) // strings only
	if err := m.opts().Snapshots.Save(ctx, lastKey(who), body, generation, scopes...); err != nil {
		m.opts().Log.Debug("write last session failed", "error", err)
	}
}

// inProject reports whether one of the groups is a project's. New conversations outside
// projects do not mention the previous one.
func inProject(groups []graphiti.Target) bool {
	return slices.ContainsFunc(groups, func(t graphiti.Target) bool { return t.Scope == graphiti.ScopeWorkspace })
}

// leftOff returns the line about the person's previous conversation in the project, for
// the first turn of a new one.
func (m *Planner) leftOff(ctx context.Context, t *turn, who graphiti.Who) []string {
	o := m.opts()
	if o.Resume <= 0 || !t.mode.Ingest || !inProject(o.Reads(who, false)) || len(t.at) > 1 || t.c.SummaryAt() >= 0 {
		return nil
	}
	var l last
	var s snapshot
	for _, from := range []struct {
		key string
		to  any
	}{{lastKey(who), &l}, {"", &s}} {
		key := from.key
		if key == "" {
			key = l.Key
		}
		body, err := o.Snapshots.Load(ctx, key)
		if err != nil || body == nil || json.Unmarshal(body, from.to) != nil || l.Session == graphiti.SessionHash(who.Session) {
			return nil
		}
	}
	at := time.Unix(s.At, 0)
	if time.Since(at) >= o.Resume || s.Session != l.Session {
		return nil
	}
	if line := s.leftOff(at); line != "" {
		return []string{line}
	}
	return nil
}

// leftOff returns a line with the session's last decision, its changed files and its open
// points, or "" if it has none. If the parts are too long, the line omits the client's
// summary first, then further open points, then files.
func (s *snapshot) leftOff(at time.Time) string {
	left := s.open()
	if len(left) == 0 {
		left = s.Listed.Open[:min(len(s.Listed.Open), leftPoints)]
	}
	line := "last conversation here, " + at.Local().Format(time.DateOnly) + ", "
	room := leftOffChars - len("- \n") - len(line) + len("; ")
	var parts, points []string
	add := func(to *[]string, label, text string) {
		if text = lineOf(text); text == "" {
			return
		}
		text = label + quoted(text)
		if size := utf8.RuneCountInString(text) + len("; "); size <= room {
			*to, room = append(*to, text), room-size
		}
	}
	addOpen := func(list []string) {
		for _, l := range list {
			label := ""
			if len(points) == 0 {
				label = "left open: "
			}
			add(&points, label, noteLine(l))
		}
	}
	addOpen(left[:min(1, len(left))])
	if n := len(s.Decided); n > 0 {
		add(&parts, lastDecided, s.Decided[n-1])
	}
	add(&parts, filesTouched, strings.Join(s.Files[max(0, len(s.Files)-leftFiles):], ", "))
	addOpen(left[min(1, len(left)):])
	if len(parts)+len(points) == 0 {
		return ""
	}
	var first []string
	add(&first, "about: ", s.Listed.About)
	return line + strings.Join(slices.Concat(first, parts, points), "; ")
}

// open returns the tasks that are not done.
func (s *snapshot) open() (tasks []string) {
	for _, t := range s.Work.Tasks {
		if !t.Done {
			tasks = append(tasks, t.Text)
		}
	}
	return tasks
}
