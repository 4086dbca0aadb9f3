package dialect

import "time"

// Limits bound the reading of a body. The zero Limits bound only the number of messages.
type Limits struct {
	Messages int              // maximum number of messages; 0 for usualMessages
	Until    time.Time        // the deadline; zero for none
	Now      func() time.Time // the clock for Until; nil for time.Now
	Room     Room             // grants RAM before an allocation; nil for unlimited RAM
}

// Room grants RAM.
type Room interface {
	Grow(bytes int) bool // reports whether it grants this many more bytes
}

const (
	usualMessages = 20000

	// partsOfMessage times the maximum number of messages is the maximum number of texts in
	// a body.
	partsOfMessage = 4

	sizeOfMessage = 88
	sizeOfSpan    = 24

	// sizeOfTurn is the size of a message's decision outside the message: its fingerprint,
	// its key, its place, and the decision.
	sizeOfTurn = 192

	// stride is the number of bytes between two checks of the clock.
	stride = 64 << 10
)

// Limit sets the limits for reading the next body.
func (c *Conversation) Limit(l Limits) { c.limits = l }

// Waited adds the time of a wait to the limit of time, which then is about the reading alone.
func (c *Conversation) Waited(d time.Duration) {
	if !c.limits.Until.IsZero() {
		c.limits.Until = c.limits.Until.Add(d)
	}
}

// Stop is the limit that ended the reading of a possibly valid body.
type Stop uint8

// The limits that end the reading of a body.
const (
	NotStopped      Stop = iota
	StoppedTooLarge      // it holds too many messages or texts
	StoppedBusy          // there is not enough RAM for it now
	StoppedLate          // reading it took too long
)

// Stopped returns the limit that ended the reading of the body.
func (c *Conversation) Stopped() Stop { return c.stopped }

// stop ends the reading of a body; the first reason counts. It returns false, for its
// callers to return.
func (c *Conversation) stop(s Stop) bool {
	if c.stopped == NotStopped {
		c.stopped = s
	}
	return false
}

func (c *Conversation) tooLarge() bool { return c.stop(StoppedTooLarge) }

// room requests RAM before its allocation.
func (c *Conversation) room(bytes int) bool {
	return c.limits.Room == nil || c.limits.Room.Grow(bytes) || c.stop(StoppedBusy)
}

// maxMessages returns the maximum number of messages in a body.
func (c *Conversation) maxMessages() int {
	if c.limits.Messages > 0 {
		return c.limits.Messages
	}
	return usualMessages
}

// InTime reports whether there is time left for the reading; if not, the reading stops.
func (c *Conversation) InTime() bool {
	if c.limits.Until.IsZero() {
		return true
	}
	now := time.Now
	if c.limits.Now != nil {
		now = c.limits.Now
	}
	return now().Before(c.limits.Until) || c.stop(StoppedLate)
}

// after counts processed bytes, and calls InTime once in a stride.
func (c *Conversation) after(bytes int) bool {
	if c.worked += bytes; c.worked < stride {
		return true
	}
	c.worked = 0
	return c.InTime()
}

// Size returns the size in bytes of the buffers that c reuses for the next body.
func (c *Conversation) Size() int {
	return cap(c.Messages)*sizeOfMessage + cap(c.spans)*sizeOfSpan + cap(c.refs)*sizeOfSpan + cap(c.scratch) + cap(c.inserts)
}

// addMessage appends a message.
func (c *Conversation) addMessage(m Message) bool {
	if len(c.Messages) >= c.maxMessages() {
		return c.tooLarge()
	}
	if len(c.Messages) == cap(c.Messages) && !c.room((cap(c.Messages)+16)*sizeOfMessage) {
		return false
	}
	c.Messages = append(c.Messages, m)
	return true
}

// addSpan appends a text.
func (c *Conversation) addSpan(s Span) bool {
	if len(c.spans) >= partsOfMessage*c.maxMessages() {
		return c.tooLarge()
	}
	if len(c.spans) == cap(c.spans) && !c.room((cap(c.spans)+16)*sizeOfSpan) {
		return false
	}
	c.spans = append(c.spans, s)
	return true
}
