package service

import (
	"context"
	"errors"
	"fmt"
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
var errOperators = ForbiddenError{errors.New("only operators may ask for this: use admin.token, or the credential of a person with admin: true in identity.users_file")}

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

// ownSelector narrows a selector to the memory of a caller who is no operator. A group is
// theirs if it is among those that their memory is in.
func ownSelector(ctx context.Context, h *Host, s *Selector, own Selector) error {
	if s.User != "" && s.User != own.User || s.Credential != "" && s.Credential != own.Credential {
		return ForbiddenError{errors.New("this is not your memory: leave out user and credential")}
	}
	s.User, s.Credential = own.User, own.Credential
	if s.Group == "" {
		return nil
	}
	meant, err := h.Memory.Find(ctx, own)
	if err != nil {
		return err
	}
	for _, o := range meant.Groups {
		if o.Group == s.Group && !o.Shared {
			return nil
		}
	}
	return ForbiddenError{fmt.Errorf("the group %s is not of your memory alone", s.Group)}
}
