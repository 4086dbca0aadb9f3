package service

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// notes is the Where of a Record with the notes of a session, and WhereRule that of a line of the
// card in any state; its Source is a card.Line.
const (
	notes     = "session"
	WhereRule = "rule"
)

// addressed returns a record with the owner of a group, so that an import elsewhere finds
// the owner's group, which may have another ID there. Other groups keep their ID.
func (sv *Service) addressed(known []ledger.Owned, group string) (r Record) {
	i := slices.IndexFunc(known, func(o ledger.Owned) bool { return o.Group == group })
	if i >= 0 {
		o := known[i]
		r.Scope = o.Scope
		if o.Owner != sv.o.Owner && !strings.HasPrefix(o.Owner, "sha256:") {
			r.User = o.Owner
		}
		switch graphiti.Scope(o.Scope) {
		case graphiti.ScopeWorkspace:
			r.Workspace = o.Key
		case graphiti.ScopeSession:
			r.Session = o.Key
		}
	} else if scope, ok := graphiti.ScopeOf(group); ok {
		r.Scope = string(scope)
	}
	t, _, err := sv.target(Selector{User: r.User, Workspace: r.Workspace, Session: r.Session}, r.Scope)
	if err != nil || t.Group != group {
		r.Group = group
	}
	return r
}

// sign returns the signature of an exported line, or "" without a secret. Without a signature of
// this installation, the author of a standing text is unknown.
func (sv *Service) sign(l *Line) string {
	if len(sv.o.Secret) == 0 {
		return ""
	}
	sum := hmac.New(sha256.New, sv.o.Secret)
	for _, part := range []string{"export", l.Where, l.Scope, l.Group, l.User, l.Workspace, l.Session, l.Role, l.Episode, l.Timestamp, l.Ended, l.Source, l.Content} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Line returns a record as a line of an import.
func (r *Record) Line() Line {
	return Line{
		Scope: r.Scope, Group: r.Group, User: r.User, Workspace: r.Workspace, Session: r.Session,
		Role: r.Role, Name: r.Speaker, Content: r.Text, Timestamp: r.Time, Where: r.Where, Episode: r.Name, Ended: r.Ended, Source: r.Source, Signed: r.Signed,
	}
}

// turn returns the turn ID of an exported line, or "".
func (l *Line) turn() string {
	if l.Where != "memory" || graphiti.IsWork(l.Episode) { // the turn itself has that ID
		return ""
	}
	id, _ := graphiti.TurnOf(l.Episode)
	return id
}

const (
	maxEpisode = 512     // bytes of an episode's name
	maxSource  = 8 << 10 // bytes of an episode's source
)

// restored fills a turn from an exported line.
func restored(t *ledger.Turn, l *Line) error {
	switch {
	case !slices.Contains([]string{"memory", distilled, WhereRule, notes}, l.Where):
		return fmt.Errorf("where: unknown value %q; write memory, fact, rule or session", l.Where)
	case len(l.Episode) > maxEpisode || len(l.Source) > maxSource:
		return fmt.Errorf("name, source: one of them is too long; at most %d and %d bytes are allowed", maxEpisode, maxSource)
	case strings.TrimSpace(l.Content) == "":
		return errors.New("text: is empty")
	case l.Where != "memory":
		return nil
	}
	if _, err := time.Parse(time.RFC3339, l.Ended); err != nil && l.Ended != "" {
		return fmt.Errorf("ended: %q cannot be read; write it as 2026-11-21T09:00:00Z", l.Ended)
	}
	if id := l.turn(); id != "" {
		t.ID = id
	} else {
		t.ID = ledger.DerivedID("restore", t.Targets[0].Group, l.Episode, l.Timestamp, l.Role, l.Content, l.ID)
	}
	t.Session, t.SessionHash = "", gjson.Get(l.Source, "session").String()
	t.Client = gjson.Get(l.Source, "client").String()
	t.Restored = []ledger.Restored{{Name: l.Episode, Speaker: l.Name, Role: graphiti.RoleType(l.Role), Source: l.Source}}
	if c, ok := graphiti.ParseCurated(l.Content); ok && l.Role == string(graphiti.RoleSystem) {
		t.Kind = c.Kind
	}
	switch graphiti.RoleType(l.Role) {
	case graphiti.RoleAssistant:
		t.Assistant, t.ID = l.Content, ledger.DerivedID("answer", t.ID) // its question may come later, as after an undo
	case graphiti.RoleUser, graphiti.RoleSystem:
		t.User = l.Content
	default:
		return fmt.Errorf("role: unknown role %q; write user, assistant or system", l.Role)
	}
	return nil
}

// joins adds an answer to its question's turn, and reports whether they belong together.
func joins(t, next *ledger.Turn) bool {
	if len(t.Restored) != 1 || len(next.Restored) != 1 || ledger.DerivedID("answer", t.ID) != next.ID || t.Targets[0] != next.Targets[0] ||
		t.Restored[0].Role != graphiti.RoleUser || next.Restored[0].Role != graphiti.RoleAssistant {
		return false
	}
	t.Assistant, t.Answered = next.Assistant, next.Answered
	t.Restored = append(t.Restored, next.Restored[0])
	return true
}

// restoreNotes stores the notes of a session, unless the session has notes.
func (sv *Service) restoreNotes(ctx context.Context, t *ledger.Turn, l *Line, done *Imported) error {
	there := false
	err := sv.o.State.Snapshots.Each(ctx, func(session string, _ []byte) error {
		there = there || session == l.Episode
		return nil
	}, t.Targets[0].Group)
	if err != nil {
		return err
	}
	if there || l.Episode == "" {
		done.Known++
		return nil
	}
	body := sv.o.Pipeline.Redacted(l.Source)
	if !json.Valid([]byte(body)) {
		return errors.New("source: is not the one of a session's notes; leave the line as export wrote it")
	}
	done.Kept++
	session := gjson.Get(l.Source, "session").String()
	scopes := append(t.ImportScopes(), t.Targets[0].Group)
	if session != "" {
		scopes = append(scopes, graphiti.SessionScopeOf(session, ""), graphiti.SessionScopeOf(session, t.Owner))
	}
	return sv.o.State.Snapshots.Save(ctx, l.Episode, []byte(body), t.Generation, scopes...)
}

// restoreRule stores a line of the card, unless its group has that line. A line that another
// installation may have written waits: the promoted message of a confirmed one does so itself.
func (sv *Service) restoreRule(ctx context.Context, t *ledger.Turn, line *Line, done *Imported) error {
	var l card.Line
	if err := json.Unmarshal([]byte(line.Source), &l); err != nil || l.Text == "" || l.Kind == "" || l.State == "" {
		return errors.New("source: is not the one of a rule; leave the line as export wrote it")
	}
	l.Group, l.Owner, l.Changed = t.Targets[0].Group, cmp.Or(l.Owner, t.Owner), t.Said.UnixNano()
	waits := l.Stands() && !hmac.Equal([]byte(line.Signed), []byte(sv.sign(line)))
	if waits && l.Promoted != "" {
		return nil
	}
	if waits {
		l.State, l.Applies = card.Pending, false
	}
	_, isNew, err := sv.cards().Offer(ctx, l, t.Generation, t.ImportScopes()...)
	switch {
	case errors.Is(err, card.ErrFull):
		done.Full++
		return nil
	case err != nil:
		return err
	case !isNew:
		done.Known++
		return nil
	case waits && slices.Contains([]string{card.KindRule, card.KindFact, card.KindForget}, l.Kind): // a promoted message counts itself
		done.Waiting++
	}
	done.Rules++
	return nil
}

// restoreEnds ends messages that had ended in the export, before they are stored. A message that
// is already in the memory keeps its state.
func (sv *Service) restoreEnds(ctx context.Context, ended map[string][]*Line, generation int64) error {
	for group, lines := range ended {
		names, known := make([]string, len(lines)), make(map[string]bool)
		for i, l := range lines {
			names[i] = l.Episode
		}
		for r, err := range sv.rows(ctx, ledger.Part{Group: group}, graphiti.Filter{Names: names}) {
			if err != nil {
				return err
			}
			known[r.Name] = true
		}
		for _, l := range lines {
			at, err := time.Parse(time.RFC3339, l.Ended)
			if err == nil && !known[l.Episode] {
				err = sv.o.State.Ended.Add(ctx, group, []string{l.Episode}, at, generation)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// notesOf is the record of a session's notes.
func notesOf(r Record, session string, body []byte) Record {
	r.Where, r.Name, r.Text, r.Source = notes, session, strings.Join(inject.SnapshotLines(body), "\n"), string(body)
	return r
}
