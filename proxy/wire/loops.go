package wire

import (
	"log/slog"
	"sync"
)

// Loops relay streams without the goroutine that began them: over TCP in event
// loops, where the system has what they need, and else in a goroutine for each.
// It is safe for concurrent use.
type Loops struct {
	log   *slog.Logger
	loops loops
}

// startLoops starts the loops, which Close ends.
func startLoops(log *slog.Logger) *Loops {
	l := &Loops{log: log}
	l.loops.start(log)
	return l
}

// Close ends the loops. There are no streams any more.
func (l *Loops) Close() { l.loops.close() }

// Relay relays the rest of a stream that has begun, and then calls end in a
// goroutine of its own, with what Stream.Relay returns.
func (l *Loops) Relay(s *Stream, end func(whole bool, err error)) {
	if l.loops.take(s, end) {
		return
	}
	// Ends with the stream, which its own deadlines and Cut bound.
	go func() {
		whole, err := l.relay(s)
		end(whole, err)
	}()
}

// narrow holds buffers of FirstRead.
var narrow = sync.Pool{New: func() any { b := make([]byte, FirstRead); return &b }}

func (l *Loops) relay(s *Stream) (whole bool, err error) {
	defer CatchPanic(l.log, "relay of a stream", func() { whole, err = false, ErrBug })
	in := narrow.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	whole, err = s.Relay(in)
	if len(*in) == FirstRead {
		narrow.Put(in)
	} else {
		wideBuffers.Put(in)
	}
	return whole, err
}
