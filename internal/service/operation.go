package service

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

// Host is what operations run on: a running proxy, or the files of one that is not
// running.
type Host struct {
	Memory *Service // nil: it is off, or only the queue is open
	Queue  Spool    // nil: the memory is off
	Counts func(context.Context) (capture.QueueStatus, error)

	// Passed returns the newest requests behind the one with a number, oldest first, of
	// one owner, or of everybody where that is empty; nil: they are not noted.
	Passed func(after, limit int, owner string) []Request

	// Status says how the proxy is. With fresh it asks the memory and waits for the
	// answer; without, it reports the last answer.
	Status func(ctx context.Context, fresh bool) health.Status

	next atomic.Pointer[Host]
}

// Become has Now return another host from then on.
func (h *Host) Become(next *Host) { h.next.Store(next) }

// Now returns the host that h has become, or h. An operation runs on it.
func (h *Host) Now() *Host {
	if next := h.next.Load(); next != nil {
		return next
	}
	return h
}

// Operation is one thing that people ask of a memory, its queue, or the proxy. Whoever
// offers it, over HTTP or as a command, adds nothing to it.
type Operation[In, Out any] struct {
	Spec
	Default In // input fields that the caller leaves out

	Run  func(ctx context.Context, h *Host, in *In) (Out, error)
	Each func(ctx context.Context, h *Host, in *In, f func(Out) error) error // replaces Run where there are many answers

	Audit func(in *In, out *Out) Entry // nil: it shows and changes nothing that is remembered

	// Own narrows an input to the memory of a caller who is no operator, or returns a
	// ForbiddenError. nil: only operators may ask.
	Own func(ctx context.Context, h *Host, in *In, own Selector) error
}

// Spec describes an operation.
type Spec struct {
	Name  string // as in memory/show
	About string // for people

	Reads         bool // it changes nothing, and its input is a few words, numbers and switches
	WithoutMemory bool // it works while the memory is off
	AnyDir        bool // it may be asked of a proxy with another data directory

	Size  int64         // most bytes of its input; 0: the limit of the mount
	Takes time.Duration // most time that it may wait for the memory; 0: it does not wait
	Fails Failure       // kind of failure if a valid input fails
}

// Failure says what is at fault when an operation fails though its input is valid.
type Failure int

// The kinds of failures.
const (
	OfInput  Failure = iota // what is named cannot be used as it was
	OfFiles                 // files of the proxy
	OfMemory                // the memory does not answer, or refuses
)

// Entry is what the audit log says of one call, apart from where it came from and
// whether it succeeded. An Entry without What is not logged.
type Entry struct {
	What   string
	Who    string // whose memory it was about
	Groups []string
	More   []slog.Attr
}

// theQueue stands in the audit log for whose the turns of the queue are.
const theQueue = "the queue"

// audit returns the audit entry of a call. The selector says about whom it was.
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
	// Describe returns the description of the operation, and an example of its input and
	// output. many says that it answers with any number of outputs.
	Describe() (s Spec, in, out any, many bool)

	// Call sets the input to the default, lets read fill it in, and runs the operation
	// for a caller. Each of many outputs goes to emit; a single one is returned. An
	// input that cannot be read is an InvalidError, one that the caller may not ask for
	// is a ForbiddenError.
	Call(ctx context.Context, h *Host, c Caller, read func(in any) error, emit func(out any) error) (out any, e Entry, err error)
}

// Describe implements Mountable.
func (o Operation[In, Out]) Describe() (s Spec, in, out any, many bool) {
	return o.Spec, o.Default, *new(Out), o.Each != nil
}

// Call implements Mountable.
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
	return out, e, err
}
