package inspector

import (
	"errors"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// look runs an operation for a page. The page itself builds the input, so a failure of the
// input counts as a failure of the memory.
func look[In, Out any](v *visit, op service.Operation[In, Out], fill func(*In)) (Out, error) {
	out, err := call(v, op, fill, nil)
	if err != nil && op.Fails == service.OfInput {
		err = failed{service.OfMemory, err}
	}
	return out, err
}

// act runs the operation of a form, and redirects to a page with a notice of the change.
func act[In, Out any](v *visit, op service.Operation[In, Out], to, notice string, fill func(*In)) error {
	out, err := call(v, op, fill, nil)
	if err != nil {
		return err
	}
	if f, ok := any(&out).(interface{ Left() int }); ok {
		v.left = f.Left()
	}
	if n, ok := any(&out).(interface{ UndoID() string }); ok && n.UndoID() != "" {
		return v.done(to, notice, n.UndoID())
	}
	return v.done(to, notice)
}

// call runs an operation for the visitor, and writes the audit line that the API writes. It passes
// each of many answers to f.
func call[In, Out any](v *visit, op service.Operation[In, Out], fill func(*In), f func(Out) error) (out Out, err error) {
	host := v.p.o.Host.Now()
	if host.Memory == nil && !op.WithoutMemory {
		return out, errOff
	}
	got, entry, err := op.Call(v.r.Context(), host, v.Caller, func(in any) error {
		if in, ok := in.(*In); ok {
			fill(in)
		}
		return nil
	}, func(one any) error {
		if one, ok := one.(Out); ok {
			return f(one)
		}
		return nil
	})
	if forbidden := (service.ForbiddenError{}); errors.As(err, &forbidden) {
		entry.What = op.Name
	}
	if invalid := (service.InvalidError{}); entry.What != "" && !errors.As(err, &invalid) {
		v.p.o.Audit(v.r, &entry, err)
	}
	if err != nil {
		return out, failed{op.Fails, err}
	}
	out, _ = got.(Out)
	return out, nil
}

// failed is the error of an operation, with the part at fault if the input is valid.
type failed struct {
	kind service.Failure
	error
}

func (f failed) Unwrap() error { return f.error }

// errOff is the error of an operation without a memory.
var errOff = errors.New("the memory is off")
