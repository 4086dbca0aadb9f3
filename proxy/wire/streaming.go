package wire

import (
	"context"
	"sync"
)

// Stream is Relay for a stream of events: the stream goes on after the request's
// handler has returned, and then holds nothing of the exchange. ended is called once,
// when it has ended, in any goroutine.
func (x *Exchange) Stream(a Answer, head Rewrite, tee Tee, ended func(Relayed)) {
	if x.pump != nil {
		ended(x.Relay(a, head, tee)) // the request is still being sent
		return
	}
	r, began := new(relay), false
	defer func() {
		if began {
			return
		}
		if tee != nil {
			tee.Close(false)
		}
		ended(Relayed{Err: errBug})
	}()
	whole, err := x.begin(r, &a, head, tee)
	if began = true; whole || err != nil {
		relayed, open := r.end(whole, err, wasSent)
		if !open {
			x.ctx.SetConnectionClose()
		}
		ended(relayed)
		return
	}
	x.w.streams.add()
	x.client.take(x.ctx, func() { r.goOn(ended) })
	x.link = nil // the stream has it now
}

// wasSent is true: only a request that was sent to its end has a stream.
func wasSent() bool { return true }

// goOn relays the rest, once the server has released the client's connection.
func (r *relay) goOn(ended func(Relayed)) {
	end := func(whole bool, err error) {
		if r.giveBack(whole, err, ended) {
			r.w.o.Serve(r.Client)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		// Ends when ended, and the next requests of the client, have ended.
		go end(false, ErrGone)
		return
	}
	r.streaming = &r.stream
	r.w.loops.start(r.streaming, end)
}

// giveBack ends the stream, and reports whether the client's connection may have
// another request; otherwise it is closed.
func (r *relay) giveBack(whole bool, err error, ended func(Relayed)) (open bool) {
	defer r.w.streams.remove()
	defer func() {
		if !open {
			_ = r.Client.Close()
		}
	}()
	defer CatchPanic(r.w.o.Log, "end of a stream", func() { open = false })
	r.w.hangups.forget(r.link)
	relayed, open := r.end(whole, err, wasSent)
	ended(relayed)
	if r.Client.rest(); r.w.draining.Load() {
		return false
	}
	return open
}

// streams counts the streams that go on without a handler.
type streams struct {
	mu   sync.Mutex // guards what follows
	n    int
	none chan struct{} // closed when there are none; nil: nobody waits
}

func (s *streams) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

func (s *streams) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n--; s.n == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

// wait waits until there are none, or ctx ends.
func (s *streams) wait(ctx context.Context) error {
	s.mu.Lock()
	if s.n == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.none == nil {
		s.none = make(chan struct{})
	}
	none := s.none
	s.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
