package inspector

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// conversation is the page that says why the model said what it said.
type conversation struct {
	whose
	service.Conversation
	Turns   []turn
	All     int
	Older   string // the page of the turns before these
	Newer   string
	Note    string
	In      []memoryRow
	Forget  string
	Message string // the one that is shown, on its own page
	Whole   string // the page of the whole conversation, there
}

// turn is one turn of a conversation.
type turn struct {
	ID, Time string
	Asked    []spoken // what the person said; the block stood before it
	Answered []spoken
	Decision *decision
}

// spoken is a message.
type spoken struct {
	ID, Role, Time string
	Text           said
	Href           string
	Talk           string // the page of its conversation, where it is not shown in it
	Here           bool   // it is the one that the page is about
	Waits          bool   // it has not arrived in the memory
	Ended          string // since when its person has ended it
}

// Class is how it looks.
func (s *spoken) Class() string {
	if _, known := roles[s.Role]; known {
		return s.Role
	}
	return "user"
}

// decision is what memory did for a turn.
type decision struct {
	Shown, Gone bool
	Lines       int
	Chars       int
	Why         explained
	Says        string
	Pieces      []piece // that were shown
	Others      []piece // the best of the others
	Raw         string
}

// piece is one thing that memory found.
type piece struct {
	Label, Says string
	Text        said
	Now         said // what the message says, if the line does not
	Kind, Scope string
	Role, Time  string
	Strength    string
	Percent     int
	Source      string // the page of the conversation that it was said in
	Href        string // the page of the message
	Gone        bool
	Card        *onCard
}

// onCard is a line of the card, for who takes it off.
type onCard struct {
	whose
	CSRF, Group, Line, Back string
}

const (
	// A page has so many turns, and the newest of them only if they need more room.
	turnsAtOnce  = 30
	roomForTurns = 80 << 10 // bytes

	around = 1200 // bytes around a text, about
)

func (v *visit) conversation() error {
	if known, err := v.somebody("Whose conversation?"); !known {
		return err
	}
	hash := v.r.PathValue("hash")
	skip, err := strconv.Atoi(v.r.FormValue("skip"))
	if err != nil || skip < 0 {
		skip = 0
	}
	got, err := look(v, service.TurnsOf, func(in *service.ConversationRequest) {
		in.Selector, in.Hash, in.Skip, in.Limit = v.ofWhom(v.r.FormValue("group")), hash, skip, turnsAtOnce
	})
	if err != nil {
		return err
	}
	return v.shownTurns(&got, hash, skip)
}

// shownTurns shows a conversation from behind its newest turns.
func (v *visit) shownTurns(got *service.Explained, hash string, skip int) error {
	path := "/conversation/" + url.PathEscape(hash)
	c := v.shownConversation(got, path, "")
	if n := skip + len(c.Turns); n < got.AllTurns {
		c.Older = v.whose().at(path, "skip", strconv.Itoa(n))
	}
	if skip > 0 {
		c.Newer = v.whose().at(path)
	}
	return v.show("conversation", "Why did it say that?", c)
}

// conversationAt is the page of a conversation, at one of its turns if that is known.
func (v *visit) conversationAt(hash, turn string) string {
	return conversationAt(v.whose(), hash, turn)
}

func conversationAt(w whose, hash, turn string) string {
	at := w.at("/conversation/" + url.PathEscape(hash))
	if turn != "" {
		at += "#t-" + url.PathEscape(turn)
	}
	return at
}

// shownConversation is a conversation as a page at a path shows it; message is the one
// that the page is about.
func (v *visit) shownConversation(got *service.Explained, path, message string) *conversation {
	w := v.whose()
	c := &conversation{whose: w, Conversation: got.Conversation, All: got.AllTurns, Note: got.Note, Message: message}
	for i := range got.Memories {
		c.In = append(c.In, v.memoryRow(&got.Memories[i]))
	}
	if got.Hash != "" && len(got.Memories) > 0 {
		c.Forget = w.at("/memory/forget", "session", got.Hash)
	}
	for i := len(got.Turns) - 1; i >= 0 && (len(c.Turns) == 0 || v.used < roomForTurns); i-- {
		c.Turns = append(c.Turns, v.turn(&got.Turns[i], path, message))
	}
	slices.Reverse(c.Turns)
	return c
}

func (v *visit) turn(t *service.Turn, path, message string) turn {
	out := turn{ID: t.ID, Time: t.Time}
	back := v.whose().at(path) + "#t-" + url.PathEscape(t.ID)
	for i := range t.Messages {
		s := v.spoken(&t.Messages[i], back)
		s.Here = message != "" && s.ID == message
		if s.Role == "assistant" {
			out.Answered = append(out.Answered, s)
		} else {
			out.Asked = append(out.Asked, s)
		}
	}
	if t.Decision != nil {
		out.Decision = v.decision(t.Decision, back)
	}
	return out
}

// spoken is a message, and back the page to return to after a change of it.
func (v *visit) spoken(r *service.Record, back string) spoken {
	href := v.messageAt(r.ID, r.Group, back)
	v.used += around / 2
	return spoken{ID: r.ID, Role: r.Role, Time: r.Time, Text: v.said(r.Text, href), Href: href, Waits: r.Where == "queue", Ended: r.Ended}
}

// messageAt is the page of a message in a group; empty without an id.
func (v *visit) messageAt(id, group, back string) string {
	if id == "" {
		return ""
	}
	return v.whose().at("/message/"+url.PathEscape(id), "group", group, "back", back)
}

func (v *visit) decision(d *service.Decision, back string) *decision {
	out := &decision{Shown: d.Block != "", Gone: d.Gone, Lines: d.Facts, Chars: utf8.RuneCountInString(d.Block), Raw: d.Block}
	v.used += weightOf(d.Block)
	if !out.Shown && !out.Gone {
		out.Why = reasonOf(cmp.Or(d.Reason, "timeout or error"))
		out.Says = sentence(d.Why)
	}
	for i := range d.Pieces {
		p := v.piece(&d.Pieces[i], back)
		if d.Pieces[i].Verdict == "shown" {
			out.Pieces = append(out.Pieces, p)
		} else {
			out.Others = append(out.Others, p)
		}
	}
	return out
}

func (v *visit) piece(p *service.Piece, back string) piece {
	out := piece{Kind: pieceKind(p.Kind), Role: p.Role, Time: p.Time, Gone: p.Text == "" && p.Line == "", Href: v.messageAt(p.ID, p.Group, back)}
	v.used += around
	out.Label, out.Says = verdictOf(p.Verdict)
	if p.Scope != "" {
		out.Scope = scopeOf(p.Scope)
	}
	out.Text = v.cut(cmp.Or(p.Line, p.Text), lineBeginning, out.Href)
	if p.Line != "" && p.Text != "" && p.Text != p.Line && !strings.HasSuffix(p.Line, ": "+p.Text) { // behind who said it, and when
		out.Now = v.cut(p.Text, lineBeginning, out.Href)
	}
	if p.Strength != nil {
		out.Strength, out.Percent = strconv.FormatFloat(*p.Strength, 'f', 2, 64), int(100*min(max(*p.Strength, 0), 1))
	}
	if p.Conversation != "" {
		out.Source = v.conversationAt(p.Conversation, p.Turn)
	}
	if p.Kind == "card" {
		out.Says = "It is on the card with which conversations begin."
		if p.Group != "" && p.Text != "" {
			out.Card = &onCard{v.whose(), v.CSRF, p.Group, cardField(p.Text), back}
		}
	}
	return out
}
