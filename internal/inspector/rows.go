package inspector

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// rowView is a message, a fact or a search result on a page.
type rowView struct {
	ID, Group   string
	Role, Time  string
	Kind, Scope string
	Text        said
	Now         said   // text of the message, if the line has another
	Href        string // page of the message
	Source      string // page of its conversation, outside of that page
	Here        bool   // the page is about this message
	Ended       bool   // its person ended it, and can restore it
	Gone        bool

	Label, Says string // its verdict
	Strength    string
	Percent     int
	Card        string // page with its card
}

const around = 1200 // bytes of HTML around a text, about

// Class returns the CSS class of a message.
func (r *rowView) Class() string {
	if _, known := roles[r.Role]; known {
		return r.Role
	}
	return "user"
}

// spoken converts a message. back is the page to return to after a change of it.
func (v *visit) spoken(r *service.Record, back string) rowView {
	href := v.messageAt(r.ID, r.Group, back)
	v.used += around / 2
	return rowView{ID: r.ID, Role: r.Role, Time: r.Time, Text: v.said(textOf(r), href), Href: href, Ended: r.Ended != ""}
}

// textOf returns the text of a message, of a promoted one without its form in the memory.
func textOf(r *service.Record) string {
	return (&graphiti.Row{Role: graphiti.RoleType(r.Role), Text: r.Text}).Plain()
}

// messageAt returns the address of a message in a group, or "" without an id.
func (v *visit) messageAt(id, group, back string) string {
	if id == "" {
		return ""
	}
	return v.whose().at("/message/"+url.PathEscape(id), "group", group, "back", back)
}

// rated returns a row with a verdict, a scope and a strength.
func rated(verdict, scope string, strength *float64) (r rowView) {
	r.Label, r.Says = verdictOf(verdict)
	if scope != "" {
		r.Scope = scopeOf(scope)
	}
	if strength != nil {
		r.Strength, r.Percent = strconv.FormatFloat(*strength, 'f', 2, 64), int(100*min(max(*strength, 0), 1))
	}
	return r
}

// piece converts a result for a turn, or an entry of the card.
func (v *visit) piece(p *service.Piece, back string) rowView {
	r := rated(p.Verdict, p.Scope, p.Strength)
	r.Kind, r.Role, r.Time, r.Gone, r.Href = pieceKind(p.Kind), p.Role, p.Time, p.Text == "" && p.Line == "", v.messageAt(p.ID, p.Group, back)
	v.used += around
	r.Text = v.cut(cmp.Or(p.Line, p.Text), lineBeginning, r.Href)
	if p.Line != "" && p.Text != "" && p.Text != p.Line && !strings.HasSuffix(p.Line, ": "+p.Text) { // the line adds the author and the time
		r.Now = v.cut(p.Text, lineBeginning, r.Href)
	}
	if p.Conversation != "" {
		r.Source = v.whose().conversationAt(p.Conversation, p.Turn)
	}
	if p.Kind == "card" {
		r.Says = "A line of the card."
		if p.Group != "" {
			r.Card = v.whose().at("/memory/show", "group", p.Group)
		}
	}
	return r
}
