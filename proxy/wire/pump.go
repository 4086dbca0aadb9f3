package wire

import (
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

// pump streams the rest of a request's body to the upstream while the exchange waits
// for the answer: an upstream may answer before it has read everything.
type pump struct {
	up      *upstreamConn
	done    chan struct{}
	chunked bool
	read    atomic.Bool // the entire body was read from the client
	whole   bool        // the entire body was sent; valid after done
	late    bool        // the client fell silent within the body; valid after done
}

func startPump(x *Exchange, up *upstreamConn) *pump {
	p := &pump{up: up, done: make(chan struct{}), chunked: x.ctx.Request.Header.ContentLength() < 0}
	pending := p.frame(append([]byte(nil), x.out...), x.body)
	// Ends with the body, or when join stops the client's body.
	go p.run(x, up, pending)
	return p
}

func (p *pump) run(x *Exchange, up *upstreamConn, pending []byte) {
	var framed []byte // chunk under construction
	defer close(p.done)
	defer CatchPanic(x.w.o.Log, "body of a request", func() {
		p.whole = false
		x.abandon()
	})
	left := x.ctx.Request.Header.ContentLength() - len(x.body) // negative for chunks
	rest, pooled := x.rest, wideBuffers.Get().(*[]byte)        //nolint:forcetypeassert // the pool's only type
	defer wideBuffers.Put(pooled)
	for {
		if len(pending) > 0 {
			// Check stopped after setting the deadline: join sets the flag before its own.
			if renew(&up.writeBy, x.timeouts.Idle, up.SetWriteDeadline) != nil || x.client.stopped.Load() {
				p.whole = false
				return
			}
			if _, err := up.Write(pending); err != nil {
				p.whole = false
				return // the upstream's answer, if any, has the reason
			}
		}
		if p.whole {
			x.w.hangups.watch(x.link, x.client.sock)
			return
		}
		n, err := rest.Read(*pooled)
		if left -= n; left == 0 { // before EOF: the upstream may answer these bytes
			p.read.Store(true)
		}
		if pending = (*pooled)[:n]; p.chunked {
			framed = p.frame(framed[:0], pending)
			pending = framed
		}
		switch {
		case errors.Is(err, io.EOF):
			p.whole = true
			if p.chunked {
				pending = append(x.appendTrailers(append(pending, "0\r\n"...)), "\r\n"...)
			}
		case err != nil:
			if !x.client.stopped.Load() {
				p.late = IsTimeout(err)
				x.abandon() // the client disconnected or fell silent
			}
			return
		}
	}
}

// finished reports, without waiting, whether the entire body was sent.
func (p *pump) finished() bool {
	select {
	case <-p.done:
		return p.whole
	default:
		return false
	}
}

// wasRead reports, without waiting, whether the entire body was read from the
// client.
func (p *pump) wasRead() bool { return p.read.Load() || p.finished() }

// join ends the pump, which may be blocked on either side, and reports whether it sent
// the entire body. If not, neither connection is reusable. A nil pump means that the
// body was sent with the head.
func (p *pump) join(x *Exchange) bool {
	if p == nil {
		return true
	}
	if !p.finished() {
		if !p.read.Load() {
			x.client.stopBody()
		}
		_ = p.up.SetWriteDeadline(time.Unix(1, 0)) // bytes written so far stay written
		<-p.done
		p.up.writeBy, x.client.readBy = time.Unix(1, 0), time.Time{}
	}
	x.client.stage = stageIdle
	return p.whole
}

// frame appends a piece of the body, as a chunk if the body is chunked.
func (p *pump) frame(dst, piece []byte) []byte {
	if len(piece) == 0 || !p.chunked {
		return append(dst, piece...)
	}
	dst = strconv.AppendInt(dst, int64(len(piece)), 16)
	dst = append(dst, "\r\n"...)
	dst = append(dst, piece...)
	return append(dst, "\r\n"...)
}
