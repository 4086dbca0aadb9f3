package wire

import (
	"log/slog"
	"sync"
)

// relayers relay streams without the goroutine that began them: over TCP in event
// loops, when the system has them, and otherwise in a goroutine for each. It is safe
// for concurrent use.
type relayers struct {
	log   *slog.Logger
	loops loops
}

// startLoops starts the loops; close ends them.
func startLoops(log *slog.Logger) *relayers {
	l := &relayers{log: log}
	l.loops.start(log)
	return l
}

// close ends the loops. No stream is left.
func (l *relayers) close() { l.loops.close() }

// start relays the rest of a stream that has begun, and then calls end in a goroutine
// of its own, with the results of stream.relay.
func (l *relayers) start(s *stream, end func(whole bool, err error)) {
	if l.loops.take(s, end) {
		return
	}
	// Ends with the stream, which its deadlines and cut bound.
	go func() {
		whole, err := l.relay(s)
		end(whole, err)
	}()
}

// narrow holds buffers of firstRead.
var narrow = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

func (l *relayers) relay(s *stream) (whole bool, err error) {
	defer CatchPanic(l.log, "relay of a stream", func() { whole, err = false, errBug })
	in := narrow.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	whole, err = s.relay(in)
	if len(*in) == firstRead {
		narrow.Put(in)
	} else {
		wideBuffers.Put(in)
	}
	return whole, err
}
