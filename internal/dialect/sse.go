package dialect

import "bytes"

// maxEvent bounds one event, in bytes. A larger one, usually an image, is skipped.
const maxEvent = 4 << 20

// EventReader splits a stream of server-sent events, fed in pieces of any size, as
// specified by https://html.spec.whatwg.org/multipage/server-sent-events.html: lines end
// with CR, LF or both, data lines are joined by a line feed, and an empty line ends an
// event. Unlike a browser it also accepts an event that the end of the stream ends.
type EventReader struct {
	// Emit takes each event; it must not retain the bytes.
	Emit func(name, data []byte)

	line    []byte // the current line, if it came in pieces
	name    []byte
	data    []byte
	hasData bool
	skip    bool // the current event is too large
	afterCR bool // a line feed that follows belongs to the end of the last line
	begun   bool // the byte order mark, if any, was seen
}

// keptLine bounds, in bytes, the buffers that the next event reuses.
const keptLine = 64 << 10

// Size returns the size of its buffers in bytes.
func (r *EventReader) Size() int { return cap(r.line) + cap(r.data) + cap(r.name) }

// Feed takes the next piece.
func (r *EventReader) Feed(p []byte) {
	for len(p) > 0 {
		if r.afterCR {
			r.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			r.hold(p)
			return
		}
		line := p[:i]
		if len(r.line) > 0 {
			r.hold(line)
			line = r.line
		}
		r.afterCR = p[i] == '\r'
		p = p[i+1:]
		r.take(line)
		r.line = emptied(r.line)
	}
}

// emptied returns a buffer for reuse, or nil if it is large.
func emptied(b []byte) []byte {
	if cap(b) > keptLine {
		return nil
	}
	return b[:0]
}

// End ends the stream, and with it the last event.
func (r *EventReader) End() {
	if len(r.line) > 0 {
		r.take(r.line)
		r.line = r.line[:0]
	}
	r.dispatch()
}

func (r *EventReader) hold(p []byte) {
	if len(r.line)+len(p) > maxEvent {
		r.skip = true
		r.line = append(r.line[:0], ':') // a comment, which take ignores
		return
	}
	r.line = append(r.line, p...)
}

// take reads one line.
func (r *EventReader) take(line []byte) {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		r.dispatch()
		return
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) {
	case "event":
		r.name = append(r.name[:0], value...)
	case "data":
		if len(r.data)+len(value) > maxEvent {
			r.skip = true
			return
		}
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		r.data, r.hasData = append(r.data, value...), true
	}
}

func (r *EventReader) dispatch() {
	if r.hasData && !r.skip {
		r.Emit(r.name, r.data)
	}
	r.name, r.data, r.hasData, r.skip = emptied(r.name), emptied(r.data), false, false
}
