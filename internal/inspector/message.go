package inspector

import (
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// messagePage is the page of one message, with its conversation and the possible changes of it.
type messagePage struct {
	whose
	ID, Group string
	Back      string
	Text      string
	Role      string
	Time      string
	Ended     string // time of its end, or empty
	Talk      *conversationPage
	Scope     string
	Also      int // other conversations with a copy of it
	PinTo     []choice
}

// choice is an option of a form.
type choice struct{ Value, Says string }

// changeAt returns the address of a form that changes a message.
func changeAt(id, act string) string { return "/message/" + url.PathEscape(id) + "/" + act }

func (v *visit) message() error {
	m := &messagePage{whose: v.whose(), ID: v.r.PathValue("id"), Group: v.r.FormValue("group"), Back: v.back("")}
	got, err := look(v, service.TurnsOf, func(in *service.ConversationRequest) {
		in.Selector, in.Limit = v.ofWhom(m.Group), rowsAtMost
		in.Message = m.ID
	})
	if err != nil {
		return err
	}
	m.Also = got.Also
	if err := v.inConversation(m, &got); err != nil {
		return err
	}
	if m.Scope == "workspace" {
		m.PinTo = append(m.PinTo, choice{"here", "this project"})
	}
	m.PinTo = append(m.PinTo, choice{"user", "you, everywhere"})
	return v.show("One message", m.main())
}

// inConversation fills in the message and the turns around its own.
func (v *visit) inConversation(m *messagePage, got *service.Explained) error {
	for i := range got.Turns {
		for _, r := range got.Turns[i].Messages {
			if r.ID != strings.Fields(m.ID)[0] {
				continue
			}
			m.Text, m.Role, m.Time, m.Scope, m.Ended, m.Group = editable(textOf(&r)), r.Role, r.Time, r.Scope, r.Ended, cmp.Or(m.Group, r.Group)
			got.Turns = got.Turns[max(0, i-1):min(len(got.Turns), i+2)] // its own, and one before and after
			m.Talk = v.shownConversation(got, "/message/"+url.PathEscape(m.ID), r.ID)
			if got.Hash != "" { // promoted texts have no conversation
				m.Talk.Whole = v.whose().conversationAt(got.Hash, "")
			}
			return nil
		}
	}
	return failed{service.OfInput, errors.New("the message is not among the newest of its conversation; to do: open the conversation")}
}

// onMessage runs an operation on the message of a form, in each of the person's memories that
// contains it, or without a person in the one that the form names.
func onMessage[In, Out any](v *visit, op service.Operation[In, Out], notice string, fill func(*In, service.Selector)) error {
	s := v.ofWhom(v.r.FormValue("group"))
	s.Message = v.r.PathValue("id")
	return act(v, op, v.backToMemory(), notice, func(in *In) { fill(in, s) })
}

// changing returns an action that changes the message of a form.
func changing(do string) func(*visit) error {
	return func(v *visit) error {
		return onMessage(v, service.ChangeMany, do, func(in *service.ManyRequest, s service.Selector) {
			in.Do, in.Messages, s.Message = do, []string{s.Message}, ""
			in.Selector = s
		})
	}
}

func (v *visit) correctMessage() error {
	return onMessage(v, service.Correct, "corrected", func(in *service.CorrectRequest, s service.Selector) {
		in.Selector, in.Text = s, strings.TrimSpace(v.r.FormValue("text"))
	})
}

func (v *visit) pinMessage() error {
	return act(v, service.Promote, v.backToMemory(), "pinned", func(in *service.PromoteRequest) {
		in.Selector = v.whose().selector()
		in.Kind, in.Text = v.r.FormValue("kind"), strings.TrimSpace(v.r.FormValue("text"))
		in.Scope = "user"
		if v.r.FormValue("to") == "here" {
			in.Scope, in.Group = "workspace", v.r.FormValue("group")
		}
	})
}
