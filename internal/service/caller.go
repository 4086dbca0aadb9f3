package service

import (
	"context"
	"errors"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Caller is who asks for an operation.
type Caller struct {
	Operator bool   // may ask for everything
	Name     string // for people

	// Own says whose memory is theirs, by User or Credential and nothing else. It
	// counts for callers who are no operators: they may ask for that memory only.
	Own Selector
}

// Operator is the caller who may ask for everything.
var Operator = Caller{Operator: true, Name: "the operator"}

// ForbiddenError says that a caller may not ask for something.
type ForbiddenError struct{ error }

// Unwrap returns what is forbidden.
func (e ForbiddenError) Unwrap() error { return e.error }

// errOperators says that an operation is for operators only.
var errOperators = ForbiddenError{errors.New("only operators may do this: use admin.token, or the credential of a person with admin: true in identity.users_file")}

// admits narrows an input to what is a caller's own, or returns a ForbiddenError.
func (o *Operation[In, Out]) admits(ctx context.Context, h *Host, c Caller, in *In) error {
	switch {
	case c.Operator:
		return nil
	case o.Own == nil || c.Own == (Selector{}):
		return errOperators
	}
	return o.Own(ctx, h, in, c.Own)
}

// errNotYours does not say whether there is such a person, credential or group.
var errNotYours = ForbiddenError{errors.New("this is not your memory: remove user, credential and group to use your own")}

// ownSelector narrows a selector to the memory of a caller who is no operator.
func ownSelector(ctx context.Context, h *Host, s *Selector, own Selector) error {
	t, err := h.Memory.belongings(ctx, own)
	if err == nil {
		err = t.narrow(s)
	}
	return err
}

// ownPart narrows a selector of one group, or of a session in one: a group alone is named
// without whose it is.
func ownPart(ctx context.Context, h *Host, s *Selector, own Selector) error {
	if err := ownSelector(ctx, h, s, own); err != nil {
		return err
	}
	if s.Group != "" && s.Session+s.Card+s.Message == "" {
		s.User, s.Credential = "", ""
	}
	return nil
}

// ownMessage narrows a selector of one message. Where a caller shares a group with others,
// as groups of other clients may be, they name the one that the message is in.
func ownMessage(ctx context.Context, h *Host, s *Selector, own Selector) error {
	t, err := h.Memory.belongings(ctx, own)
	if err == nil {
		err = t.narrow(s)
	}
	if err == nil && t.shares && s.Group == "" {
		err = ForbiddenError{errors.New("you share a group with others: name the message by a group that only you use")}
	}
	return err
}

// belongings are what a caller who is no operator may name.
type belongings struct {
	sv     *Service
	own    Selector
	alone  map[string]bool // groups of theirs that nobody else wrote to
	others map[string]bool // groups that somebody else wrote to
	shares bool            // one of those is theirs too
}

func (sv *Service) belongings(ctx context.Context, own Selector) (belongings, error) {
	t := belongings{sv: sv, own: own, alone: make(map[string]bool), others: make(map[string]bool)}
	_, owner, err := sv.asked(own)
	switch {
	case err != nil:
		return t, err
	case owner == "":
		return t, errOperators
	}
	known, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return t, err
	}
	for _, o := range known {
		if o.Owner != owner {
			t.others[o.Group] = true
		}
	}
	groups, err := sv.groups(ctx, own)
	for _, o := range groups {
		if t.others[o.Group] {
			t.shares = true
		} else {
			t.alone[o.Group] = true
		}
	}
	return t, err
}

// narrow has a selector mean the caller. It returns a ForbiddenError for one that names
// anybody else, or a group that is not theirs alone.
func (t *belongings) narrow(s *Selector) error {
	if s.User != "" && !t.means(s.User) || s.Credential != "" && s.Credential != t.own.Credential {
		return errNotYours
	}
	s.User, s.Credential = t.own.User, t.own.Credential
	if s.Group != "" && !t.alone[s.Group] && !t.derived(*s) {
		return errNotYours
	}
	return nil
}

// means reports whether a name is the caller's, whichever of theirs it is.
func (t *belongings) means(user string) bool {
	key, ok := graphiti.UserKey(user)
	return ok && t.own.User != "" && t.sv.o.Resolve(key) == t.own.User
}

// derived reports whether a group that nothing was written to yet is the caller's, by what
// else their selector names: an export says so of what is imported again.
func (t *belongings) derived(s Selector) bool {
	group := s.Group
	s.Group = ""
	who, err := t.sv.who(s)
	if err != nil || t.others[group] {
		return false
	}
	return slices.ContainsFunc(scopes, func(scope graphiti.Scope) bool {
		g, ok := t.sv.namer().Group(scope, who)
		return ok && g == group
	})
}
