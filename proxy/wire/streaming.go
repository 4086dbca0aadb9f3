package wire

import "sync"

// Stream is Relay for a stream of events: the stream goes on after the request's
// handler has returned, and then holds nothing of the exchange. ended is called once,
// when it has ended, in any goroutine.
func (x *Exchange) Stream(a Answer, head Rewrite, tee Tee, ended func(Relayed)) {
	if x.pump != nil {
		ended(x.Relay(a, head, tee)) // the request is still being sent
		return
	}
	s, began := new(stream), false
	defer func() {
		if began {
			return
		}
		if tee != nil {
			tee.Close(false)
		}
		ended(Relayed{Err: errBug})
	}()
	whole, err := x.begin(s, &a, head, tee)
	if began = true; whole || err != nil {
		ended(x.end(s, whole, err))
		return
	}
	x.w.streams.add()
	x.client.take(x.ctx, func() { s.goOn(ended) })
	x.link = nil // the stream has it now
}

// goOn relays the rest, once the server has released the client's connection.
func (s *stream) goOn(ended func(Relayed)) {
	end := func(whole bool, err error) {
		if s.giveBack(whole, err, ended) {
			s.w.o.Serve(s.client)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		// Ends when ended, and the next requests of the client, have ended.
		go end(false, ErrGone)
		return
	}
	s.streaming = s
	s.start(end)
}

// start relays the rest over TCP in an event loop, when the system has them, and
// otherwise in a goroutine. Then it calls end, in a goroutine of its own, with the
// results of relay.
func (s *stream) start(end func(whole bool, err error)) {
	if s.w.loops.take(s, end) {
		return
	}
	// Ends with the stream, which its deadlines and cut bound.
	go func() { end(s.relayApart()) }()
}

// narrow holds buffers of firstRead.
var narrow = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

// relayApart is relay without an exchange.
func (s *stream) relayApart() (whole bool, err error) {
	defer CatchPanic(s.w.o.Log, "relay of a stream", func() { whole, err = false, errBug })
	in := narrow.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	whole, err = s.relay(in)
	if len(*in) == firstRead {
		narrow.Put(in)
	} else {
		wideBuffers.Put(in)
	}
	return whole, err
}

// giveBack ends the stream, and reports whether the client's connection may have
// another request; otherwise it is closed.
func (s *stream) giveBack(whole bool, err error, ended func(Relayed)) (open bool) {
	defer s.w.streams.remove()
	defer func() {
		if !open {
			_ = s.client.Close()
		}
	}()
	defer CatchPanic(s.w.o.Log, "end of a stream", func() { open = false })
	s.w.hangups.forget(s.link)
	relayed, open := s.end(whole, err)
	ended(relayed)
	s.client.rest()
	return open && !s.w.draining.Load()
}
