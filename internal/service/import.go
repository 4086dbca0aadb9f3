package service

import (
	"cmp"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// Line is one line of an import.
type Line struct {
	Scope     string `json:"scope,omitempty"`     // user, workspace, session or agent; default: of the workspace or agent, else user
	Group     string `json:"group,omitempty"`     // instead of a scope
	User      string `json:"user,omitempty"`      // person that the line belongs to; default: as in the call
	Workspace string `json:"workspace,omitempty"` // likewise
	Role      string `json:"role"`                // user or assistant
	Name      string `json:"name,omitempty"`      // who speaks
	Content   string `json:"content"`
	Timestamp string `json:"timestamp,omitempty"` // RFC 3339
	Session   string `json:"session,omitempty"`   // conversation of the line
	ID        string `json:"id,omitempty"`        // lines with the same text and another ID are kept both
	Number    int    `json:"number,omitempty"`    // line number in a file, for errors; default: its position in the call

	// Fields of a Record, for a line of an export. Such a line is stored unchanged.
	Where   string `json:"where,omitempty"`
	Episode string `json:"episode,omitempty"` // name of the episode
	Ended   string `json:"ended,omitempty"`   // RFC 3339
	Source  string `json:"source,omitempty"`
	Signed  string `json:"signed,omitempty"`
}

// Imported counts lines.
type Imported struct {
	noted
	Kept  int `json:"kept"`
	Known int `json:"known"`           // lines that the memory already has
	Rules int `json:"rules,omitempty"` // stored lines of cards, which Kept does not count

	// NotTaken counts notes of sessions, which only an operator may import, or invalid
	// turns of transcripts.
	NotTaken int `json:"not_taken,omitempty"`

	// LeftOut counts messages of an export outside of the current branches, hidden ones,
	// and those of conversations excluded from memory.
	LeftOut int `json:"left_out,omitempty"`

	// Waiting counts standing texts that wait for a confirmation, because another installation
	// may have written them.
	Waiting int `json:"waiting,omitempty"`

	Full int `json:"full,omitempty"` // rules for which the list of pending lines has no room

	Into   []string `json:"into,omitempty"` // the memories of the lines, for people
	Groups []string `json:"-"`
}

// Says describes an import to people, in sentences without an end mark. omitted are the files of an
// archive that were not read.
func (i *Imported) Says(omitted []string) (says []string) {
	add := func(n int, one, rest string) {
		if n > 0 {
			says = append(says, terminal.Count(n, one)+rest)
		}
	}
	says = append(says, fmt.Sprintf("%s imported, %d already present", terminal.Count(i.Kept, "message"), i.Known))
	add(i.Rules, "line", " of rules and preferences imported")
	if len(i.Into) > 0 {
		says = append(says, "for "+strings.Join(i.Into, ", "))
	}
	add(i.Waiting, "line", " of rules and preferences wait for your confirmation, because this installation did not export them: graphiti-proxy memory pending")
	add(i.Full, "rule", " left out: too many rules wait; decide on some first: graphiti-proxy memory pending")
	add(i.LeftOut, "message", " left out: replaced by an edit or another answer, hidden, marked as not to remember, or in an unknown form")
	if len(omitted) > 0 {
		says = append(says, "not read, because they contain no conversations: "+strings.Join(omitted, ", "))
	}
	add(i.NotTaken, "line", " skipped: only an operator may import session notes")
	return says
}

// maxLines is the most lines in one call. A larger call writes fewer pages, but delays other
// writes.
const maxLines = 4000

// Import stores lines in order, each once.
func (sv *Service) Import(ctx context.Context, in *ImportRequest) (done Imported, err error) {
	s, lines := in.Selector, in.Lines
	if done.NotTaken = in.notes; in.notes > 0 && len(lines) == 0 {
		return done, nil
	}
	if len(lines) == 0 || len(lines) > maxLines {
		return done, invalid(fmt.Sprintf("send 1 to %d lines", maxLines))
	}
	imported := ""
	if err = s.check(); err == nil && in.Import != "" {
		imported, err = importOf(in.Import)
	}
	if err != nil {
		return done, err
	}
	facts, ended := make(distilledLines), make(map[string][]*Line)
	turns, messages, generation := make([]ledger.Turn, 0, len(lines)), 0, sv.o.State.Generations.Now()
	for i := range lines {
		l := &lines[i]
		t, err := sv.turnOf(s, generation, l)
		group := ""
		if err == nil {
			group = t.Targets[0].Group
			t.Import = imported
			switch l.Where {
			case distilled:
				err = facts.add(group, l)
			case notes:
				err = sv.restoreNotes(ctx, &t, l, &done)
			case WhereRule:
				err = sv.restoreRule(ctx, &t, l, &done)
			default:
				if messages++; l.Ended != "" {
					ended[group] = append(ended[group], l)
				}
				if t.Foreign && t.Kind != graphiti.KindWork {
					done.Waiting++
				}
				if len(turns) == 0 || !joins(&turns[len(turns)-1], &t) {
					turns = append(turns, t)
				}
			}
		}
		if err != nil {
			return done, fmt.Errorf("line %d: %w", cmp.Or(l.Number, i+1), err)
		}
		sv.addTarget(&done, &t)
	}
	if len(turns) > 0 {
		if err := sv.full(turns[0].Owner); err != nil {
			return done, err
		}
	}
	if err := sv.restoreEnds(ctx, ended, generation); err != nil {
		return done, err
	}
	kept, err := sv.o.Pipeline.AddAll(ctx, turns)
	done.Kept += kept
	done.Known += messages - kept
	if err == nil {
		err = sv.restoreFacts(ctx, facts, &done)
	}
	if err == nil && in.Distil {
		err = sv.queueDistilled(ctx, turns)
	}
	if done.Kept+done.Rules > 0 && in.Import != "" {
		done.change = Change{What: "import", Import: in.Import}
	}
	return done, err
}

// addTarget adds the memory of an imported turn.
func (sv *Service) addTarget(done *Imported, t *ledger.Turn) {
	if to := t.Targets[0]; !slices.Contains(done.Groups, to.Group) {
		done.Groups = append(done.Groups, to.Group)
		done.Into = append(done.Into, sv.keptFor(to.Scope, graphiti.Who{User: t.Owner, Workspace: t.Workspace}, to.Group))
	}
}

// importOf returns the session hash of a named import.
func importOf(name string) (hash string, err error) {
	named, ok := graphiti.NamedSession(name)
	if !ok {
		return "", invalid(fmt.Sprintf("import: %q is not a name", name))
	}
	return graphiti.SessionHash(named), nil
}

// of returns the selector of a line: its own fields, and for the others those of the call.
func (s Selector) of(l *Line) Selector {
	s.User, s.Workspace, s.Session, s.Group = cmp.Or(l.User, s.User), cmp.Or(l.Workspace, s.Workspace), cmp.Or(l.Session, s.Session), cmp.Or(l.Group, s.Group)
	return s
}

// turnOf returns a line as one side of a turn.
func (sv *Service) turnOf(s Selector, generation int64, l *Line) (ledger.Turn, error) {
	var t ledger.Turn
	s = s.of(l)
	scope := l.Scope
	if scope == "" && s.Group == "" { // a line's session is not its memory
		scope = string(narrowest(Selector{Workspace: s.Workspace, Agent: s.Agent}))
	}
	target, who, err := sv.target(s, scope)
	if err != nil {
		return t, err
	}
	at := time.Now()
	if l.Timestamp != "" {
		if at, err = time.Parse(time.RFC3339, l.Timestamp); err != nil {
			return t, fmt.Errorf("timestamp: %q cannot be read; write it as 2026-11-21T09:00:00Z", l.Timestamp)
		}
	}
	t = ledger.Turn{
		ID:      ledger.DerivedID("import", target.Group, s.Session, l.Timestamp, l.Role, l.Name, l.Content, l.ID),
		Session: who.Session, Owner: who.Owner(), Workspace: who.Workspace, Speaker: l.Name, Said: at, Answered: at,
		Client: "import", Targets: []graphiti.Target{target}, Generation: generation, Standalone: true,
	}
	if l.Where != "" {
		err = restored(&t, l)
		t.Foreign = err == nil && t.Kind != "" && !hmac.Equal([]byte(l.Signed), []byte(sv.sign(l)))
		return t, err
	}
	switch l.Role {
	case "user", "human":
		t.User = l.Content
	case "assistant", "ai", "model":
		t.Assistant = l.Content
	default:
		return t, fmt.Errorf("role: unknown role %q; write user or assistant", l.Role)
	}
	if strings.TrimSpace(l.Content) == "" {
		return t, errors.New("content: is empty")
	}
	return t, nil
}
