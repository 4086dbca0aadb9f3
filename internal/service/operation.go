package service

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

// Host is what operations run on: a proxy, or the files of one that does not run.
type Host struct {
	Memory *Service // nil: it is off, or only the queue is open
	Queue  Spool    // nil: the memory is off
	Counts func(context.Context) (capture.QueueStatus, error)

	// Status says how the proxy is. Only where fresh is set does it ask the
	// memory, and wait for it; else it says what was found last.
	Status func(ctx context.Context, fresh bool) health.Status
}

// Operation is one thing that people ask: of a memory, of its queue, or of the
// proxy. Whoever offers it, over HTTP or as a command, adds nothing to it.
type Operation[In, Out any] struct {
	Spec
	Default In // what is meant where the input does not say

	Run  func(ctx context.Context, h *Host, in *In) (Out, error)
	Each func(ctx context.Context, h *Host, in *In, f func(Out) error) error // in place of Run, where there are many answers

	Audit func(in *In, out *Out) Entry // nil: it shows and changes nothing that is remembered
}

// Spec is what there is to know about an operation before it is called.
type Spec struct {
	Name  string // as in memory/show
	About string // for people

	Reads         bool // it changes nothing, and its input is a few words, numbers and switches
	WithoutMemory bool // it works while the memory is off
	AnyDir        bool // it is about a proxy, whichever data directory it owns

	Size  int64         // bytes that its input may have; 0: as the mount has it
	Takes time.Duration // how long it may take where it waits for the memory; 0: it does not wait
	Fails Failure       // what it is when a valid input fails
}

// Failure says what is wrong when an operation fails though its input is valid.
type Failure int

// The kinds of failures.
const (
	OfInput  Failure = iota // what is named cannot be used as it was
	OfFiles                 // the proxy's own
	OfMemory                // which does not answer, or refuses
)

// Entry is what the audit log says of one call, beside where it came from and
// whether it succeeded. Without What it says nothing.
type Entry struct {
	What   string
	Who    string // whose memory it was about
	Groups []string
	More   []slog.Attr
}

// theQueue is whose the turns of the queue are, in the audit log.
const theQueue = "the queue"

// audit is the entry of a call about whom a selector means.
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

// Mountable is an operation whatever its types are.
type Mountable interface {
	// Describe says what it is, and shows an input and an output. many says that it
	// answers with any number of those.
	Describe() (s Spec, in, out any, many bool)

	// Call reads an input, which begins as the default, and runs the operation. Each of
	// many answers goes to emit; a single one is returned. An input that cannot
	// be read is an InvalidError.
	Call(ctx context.Context, h *Host, read func(in any) error, emit func(out any) error) (out any, e Entry, err error)
}

// Describe implements Mountable.
func (o Operation[In, Out]) Describe() (s Spec, in, out any, many bool) {
	return o.Spec, o.Default, *new(Out), o.Each != nil
}

// Call implements Mountable.
func (o Operation[In, Out]) Call(ctx context.Context, h *Host, read func(in any) error, emit func(out any) error) (_ any, e Entry, err error) {
	in, out := o.Default, *new(Out)
	if err := read(&in); err != nil {
		return nil, e, InvalidError{err}
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
