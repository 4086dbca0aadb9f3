package inspector

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// conversationPage is the page of a conversation, with the reasons for its answers.
type conversationPage struct {
	whose
	service.Conversation
	Turns  []turnView
	Older  string // page of the turns before these
	Newer  string
	Note   string
	In     []memoryRow
	Forget string
	Whole  string // page of the whole conversation, on the page of a message
}

// turnView is one turn of a conversation.
type turnView struct {
	ID, Time string
	Asked    []rowView // messages of the person, after the block
	Answered []rowView
	Decision *decisionView
	Work     []string // lines about the agent's tool calls
	Imported bool     // no request of the proxy had it
	Changed  bool     // a correction or a move stored it
}

// decisionView is the result of memory for a turn.
type decisionView struct {
	Shown, Gone bool
	Lines       int
	Chars       int
	Why         explained
	Says        string
	Pieces      []rowView // pieces in the block
	Others      []rowView // best pieces outside of the block
	Raw         string
}

const (
	// turnsAtOnce and roomForTurns bound a page: it has only the newest of its turns if
	// they need more room.
	turnsAtOnce  = 30
	roomForTurns = 80 << 10 // bytes
)

func (v *visit) conversation() error {
	if known, err := v.choosePerson("Choose a person"); !known {
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
	if invalid := (service.InvalidError{}); errors.As(err, &invalid) {
		return errUnstored
	}
	if err != nil {
		return err
	}
	return v.shownTurns(&got, hash, skip)
}

// shownTurns shows a conversation without its skip newest turns.
func (v *visit) shownTurns(got *service.Explained, hash string, skip int) error {
	path := "/conversation/" + url.PathEscape(hash)
	c := v.shownConversation(got, path, "")
	if n := skip + len(c.Turns); n < got.AllTurns {
		c.Older = v.whose().at(path, "skip", strconv.Itoa(n))
	}
	if skip > 0 {
		c.Newer = v.whose().at(path)
	}
	return v.show("Conversation", c.main())
}

// conversationAt returns the address of a conversation, at a turn unless turn is empty.
func (w whose) conversationAt(hash, turn string) string {
	at := w.at("/conversation/" + url.PathEscape(hash))
	if turn != "" {
		at += "#t-" + url.PathEscape(turn)
	}
	return at
}

// shownConversation returns the conversation for a page at path. message is the id of the
// page's message, or empty.
func (v *visit) shownConversation(got *service.Explained, path, message string) *conversationPage {
	w := v.whose()
	c := &conversationPage{whose: w, Conversation: got.Conversation, Note: got.Note}
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

func (v *visit) turn(t *service.Turn, path, message string) turnView {
	out := turnView{ID: t.ID, Time: t.Time, Work: t.Work}
	back := v.whose().at(path) + "#t-" + url.PathEscape(t.ID)
	for i := range t.Messages {
		s := v.spoken(&t.Messages[i], back)
		s.Here = message != "" && s.ID == message
		out.Imported = strings.Contains(t.Messages[i].Source, `"import":`) || strings.Contains(t.Messages[i].Source, `"client":"import"`)
		out.Changed = strings.Contains(t.Messages[i].Source, `"client":"graphiti-proxy"`)
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

func (v *visit) decision(d *service.Decision, back string) *decisionView {
	out := &decisionView{Shown: d.Block != "", Gone: d.Gone, Lines: d.Facts, Chars: utf8.RuneCountInString(d.Block), Raw: d.Block}
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
