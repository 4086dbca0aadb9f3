package service

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Caller is the caller of an operation.
type Caller struct {
	Operator bool   // may call everything
	Auditor  bool   // may also call operations that show no text of others
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

// admits narrows an input to the caller's memory, or returns a ForbiddenError. It rejects ignored
// fields of callers with access.
func (o *Operation[In, Out]) admits(ctx context.Context, h *Host, c Caller, in *In) error {
	var ignored error
	for _, name := range o.Without {
		if f := reflect.ValueOf(in).Elem().FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) }); !f.IsZero() {
			ignored = invalid(name + ": does not select here; remove it")
		}
	}
	switch {
	case c.Operator, c.Auditor && o.Metadata:
		return ignored
	case o.Own != nil && c.Own != (Selector{}):
		return cmp.Or(o.Own(ctx, h, in, c.Own), ignored)
	case !o.People || c.Own == (Selector{}):
		return errOperators
	}
	return cmp.Or(h.Memory.narrow(ctx, any(in).(interface{ selected() *Selector }).selected(), c.Own), ignored)
}

func (s *Selector) selected() *Selector { return s }

// errNotYours does not reveal whether a person, credential or group exists.
var errNotYours = ForbiddenError{errors.New("this is not your memory: remove user, credential and group to use your own")}

// narrow narrows a selector to the memory of a caller who is no operator, and one of a message to
// groups without other owners.
func (sv *Service) narrow(ctx context.Context, s *Selector, own Selector) error {
	s.unshared = s.unshared || s.Message != ""
	r, err := sv.belongings(ctx, own)
	if err != nil {
		return err
	}
	return r.narrow(s)
}

// narrowPart narrows a selector of one group, or of a session in one. A selector of a whole group
// names no owner.
func (sv *Service) narrowPart(ctx context.Context, s *Selector, own Selector) error {
	err := sv.narrow(ctx, s, own)
	if s.Group != "" && s.Session+s.Message == "" {
		s.User, s.Credential = "", ""
	}
	return err
}

// belongings resolves the memory of a caller who is no operator.
func (sv *Service) belongings(ctx context.Context, own Selector) (*resolution, error) {
	r, err := sv.resolve(ctx, own)
	if err == nil && r.owner == "" {
		err = errOperators
	}
	return r, err
}

// shared reports whether a group has other owners.
func (r *resolution) shared(o ledger.Owned) bool {
	return slices.ContainsFunc(r.known, func(k ledger.Owned) bool { return k.Group == o.Group && k.Owner != r.owner })
}

// narrow sets a selector's owner to the caller. It returns a ForbiddenError for another person or
// a shared group.
func (r *resolution) narrow(s *Selector) error {
	if s.User != "" && !r.means(s.User) || s.Credential != "" && s.Credential != r.Credential {
		return errNotYours
	}
	s.User, s.Credential = r.User, r.Credential
	if s.Group != "" && (r.shared(ledger.Owned{Group: s.Group}) || !r.derives(*s)) {
		return errNotYours
	}
	return nil
}

// means reports whether a name is the caller's.
func (r *resolution) means(user string) bool {
	key, ok := graphiti.UserKey(user)
	return ok && r.User != "" && r.sv.o.People.Resolve(key) == r.User
}

// derives reports whether a group is the caller's, or a new one that follows from the selector,
// as when an export is imported.
func (r *resolution) derives(s Selector) bool {
	group := s.Group
	if slices.ContainsFunc(r.groups, func(o ledger.Owned) bool { return o.Group == group }) {
		return true
	}
	s.Group = ""
	who, err := r.sv.who(s)
	return err == nil && slices.ContainsFunc(scopes, func(scope graphiti.Scope) bool {
		g, ok := r.sv.namer().Group(scope, who)
		return ok && g == group
	})
}
