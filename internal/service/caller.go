package service

import (
	"context"
	"errors"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Caller is the caller of an operation.
type Caller struct {
	Operator bool   // may call everything
	Name     string // display name

	// Own selects the caller's memory by User or Credential alone. Callers who are no operators
	// have access to that memory only.
	Own Selector
}

// Operator is the caller with access to everything.
var Operator = Caller{Operator: true, Name: "the operator"}

// ForbiddenError means that the caller has no access.
type ForbiddenError struct{ error }

// Unwrap returns the cause.
func (e ForbiddenError) Unwrap() error { return e.error }

// errOperators means that only operators have access.
var errOperators = ForbiddenError{errors.New("only operators may do this: use admin.token, or the credential of a person with admin: true in identity.users_file")}

// admits narrows an input to the caller's memory, or returns a ForbiddenError.
func (o *Operation[In, Out]) admits(ctx context.Context, h *Host, c Caller, in *In) error {
	switch {
	case c.Operator:
		return nil
	case o.Own == nil || c.Own == (Selector{}):
		return errOperators
	}
	return o.Own(ctx, h, in, c.Own)
}

// errNotYours does not reveal whether a person, credential or group exists.
var errNotYours = ForbiddenError{errors.New("this is not your memory: remove user, credential and group to use your own")}

// narrows returns an Operation.Own that narrows the selector of an input.
func narrows[In any, P interface {
	*In
	selected() *Selector
}](narrow func(ctx context.Context, h *Host, s *Selector, own Selector) error) func(context.Context, *Host, *In, Selector) error {
	return func(ctx context.Context, h *Host, in *In, own Selector) error {
		return narrow(ctx, h, P(in).selected(), own)
	}
}

func (s *Selector) selected() *Selector { return s }

// ownSelector narrows a selector to the memory of a caller who is no operator.
func ownSelector(ctx context.Context, h *Host, s *Selector, own Selector) error {
	t, err := h.Memory.belongings(ctx, own)
	if err == nil {
		err = t.narrow(s)
	}
	return err
}

// ownPart narrows a selector of one group, or of a session in one. A selector of a whole group
// names no owner.
func ownPart(ctx context.Context, h *Host, s *Selector, own Selector) error {
	if err := ownSelector(ctx, h, s, own); err != nil {
		return err
	}
	if s.Group != "" && s.Session+s.Card+s.Message == "" {
		s.User, s.Credential = "", ""
	}
	return nil
}

// ownMessage narrows a selector of one message. A caller with shared groups, such as groups of
// other clients, must name an unshared one.
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

// belongings holds the groups that a caller may name.
type belongings struct {
	sv     *Service
	own    Selector
	alone  map[string]bool // groups without other owners
	others map[string]bool // groups with other owners
	shares bool            // one of the caller's groups has other owners
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

// narrow sets a selector's owner to the caller. It returns a ForbiddenError for another person or
// a shared group.
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

// means reports whether a name is the caller's.
func (t *belongings) means(user string) bool {
	key, ok := graphiti.UserKey(user)
	return ok && t.own.User != "" && t.sv.o.Resolve(key) == t.own.User
}

// derived reports whether a new group follows from the caller's selector, as when an export is
// imported.
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
