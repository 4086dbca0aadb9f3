package service

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

// Host provides the memory and queue for operations: those of a running proxy, or its files.
type Host struct {
	Memory *Service // nil if memory is off
	Queue  Spool    // nil if memory is off
	Counts func(context.Context) (capture.QueueStatus, error)

	// Stored returns the extent of the memory; nil if memory is off.
	Stored func(context.Context) (graphiti.Stored, error)

	// Passed returns the newest requests after a number, oldest first. An empty owner selects all
	// owners. nil if the request log is off.
	Passed func(after, limit int, owner string) []graphiti.LoggedRequest

	// Link returns a link to the pages for a person; nil without a running proxy.
	Link func(Caller) Link

	// Status returns the proxy's status. With fresh it waits for the memory's answer; otherwise
	// it reports the last one.
	Status func(ctx context.Context, fresh bool) health.Status

	next atomic.Pointer[Host]
}

// Become makes Now return another host.
func (h *Host) Become(next *Host) { h.next.Store(next) }

// Now returns the host that replaced h, or h. Operations run on it.
func (h *Host) Now() *Host {
	if next := h.next.Load(); next != nil {
		return next
	}
	return h
}

// Operation is a request to a memory, its queue, or the proxy. HTTP and commands mount it
// unchanged.
type Operation[In, Out any] struct {
	Spec
	Default In // defaults of input fields

	Run  func(ctx context.Context, h *Host, in *In) (Out, error)
	Each func(ctx context.Context, h *Host, in *In, f func(Out) error) error // replaces Run for many answers

	Audit func(in *In, out *Out) Entry // nil for operations that neither show nor change remembered text

	// Own replaces the narrowing of the input's Selector for callers who are no operators.
	Own func(ctx context.Context, h *Host, in *In, own Selector) error
}

// withMemory returns the Run of an operation that is a method of the memory.
func withMemory[In, Out any](do func(*Service, context.Context, *In) (Out, error)) func(context.Context, *Host, *In) (Out, error) {
	return func(ctx context.Context, h *Host, in *In) (Out, error) { return do(h.Memory, ctx, in) }
}

// Spec describes an operation.
type Spec struct {
	Name  string // as in memory/show
	About string // description for people

	People        bool     // people may call it for their own memory; otherwise only operators may
	Metadata      bool     // read-only, without texts; auditors may call it for all people
	Reads         bool     // read-only, with a short input
	WithoutMemory bool     // works while memory is off
	Without       []string // fields of the input's Selector that it does not read, and so refuses

	Size  int64         // maximum input bytes, or 0 for the mount's limit
	Takes time.Duration // maximum wait for the memory, or 0 for no wait
	Fails Failure       // fault of a failure with valid input
}

// Failure is the fault of a failed operation with valid input.
type Failure int

// The kinds of failures.
const (
	OfInput  Failure = iota // the named thing is unusable
	OfFiles                 // files of the proxy
	OfMemory                // the memory is down or refuses
)

// Entry is an audit log entry without its origin and result. An entry without What is not logged.
type Entry struct {
	What   string
	Who    string // the selected memory
	Groups []string
	More   []slog.Attr
}

// theQueue replaces the selected memory in audit entries of the queue.
const theQueue = "the queue"

func (s Selector) audit(what string, groups []string, more ...slog.Attr) Entry {
	var parts []string
	for _, p := range []struct{ what, value string }{
		{"user", s.User}, {"agent", s.Agent}, {"workspace", s.Workspace}, {"session", s.Session}, {"group", s.Group}, {"credential", s.Credential},
	} {
		if p.value != "" {
			parts = append(parts, p.what+"="+p.value)
		}
	}
	who := "the owner"
	if parts != nil {
		if s.Own {
			parts = append(parts, "and the person's own")
		}
		who = strings.Join(parts, " ")
	}
	return Entry{what, who, groups, more}
}

// Mountable is an Operation of any input and output types.
type Mountable interface {
	// Describe returns the description and an example of input and output. many reports whether
	// there may be many outputs.
	Describe() (s Spec, in, out any, many bool)

	// Call sets the input to its default, calls read to fill it, and runs the operation. It
	// passes each of many outputs to emit, and returns a single one. Unreadable input is an
	// InvalidError; forbidden input is a ForbiddenError.
	Call(ctx context.Context, h *Host, c Caller, read func(in any) error, emit func(out any) error) (out any, e Entry, err error)
}

func (o Operation[In, Out]) Describe() (s Spec, in, out any, many bool) {
	return o.Spec, o.Default, *new(Out), o.Each != nil
}

func (o Operation[In, Out]) Call(ctx context.Context, h *Host, c Caller, read func(in any) error, emit func(out any) error) (_ any, e Entry, err error) {
	in, out := o.Default, *new(Out)
	if err := read(&in); err != nil {
		return nil, e, InvalidError{err}
	}
	if err := o.admits(ctx, h, c, &in); err != nil {
		return nil, e, err
	}
	if o.Each != nil {
		err = o.Each(ctx, h, &in, func(out Out) error { return emit(out) })
	} else {
		out, err = o.Run(ctx, h, &in)
	}
	if o.Audit != nil {
		e = o.Audit(&in, &out)
	}
	if n, ok := any(&out).(interface{ made() *noted }); ok && n.made().change.What != "" {
		s := new(Selector) // empty for an import of transcripts
		if of, ok := any(&in).(interface{ selected() *Selector }); ok {
			s = of.selected()
		}
		h.Memory.note(ctx, h.Memory.historyOf(s), c.Name, &n.made().change)
		if one := n.made(); one.change.Reverts() {
			one.Undo = one.change.ID
		}
	}
	return out, e, err
}

// Run calls an operation that has one output, with an input of its type.
func Run(ctx context.Context, op Mountable, h *Host, c Caller, in any) (out any, e Entry, err error) {
	return op.Call(ctx, h, c, func(to any) error {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(in))
		return nil
	}, nil)
}
