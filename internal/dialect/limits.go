package dialect

import "time"

// Limits bound what reading a body may take. The zero Limits have the usual
// number of messages, and no other bound.
type Limits struct {
	Messages int              // most messages; 0: usualMessages
	Until    time.Time        // when reading gives up; zero: never
	Now      func() time.Time // the clock that is asked about Until; nil: time.Now
	Room     Room             // asked before memory is allocated; nil: there is room
}

// Room is where memory is asked for.
type Room interface {
	Grow(bytes int) bool // reports whether there is so much
}

const (
	usualMessages = 20000

	// partsOfMessage is how many texts a body may hold for each message that it
	// may hold.
	partsOfMessage = 4

	sizeOfMessage = 80
	sizeOfSpan    = 24

	// sizeOfTurn is what is noted beside a message while it is decided about
	// it: its fingerprint, its key, where it took place, and what was decided.
	sizeOfTurn = 192

	// stride is how many bytes are read between two looks at the clock.
	stride = 64 << 10
)

// Limit bounds the reading of the next body.
func (c *Conversation) Limit(l Limits) { c.limits = l }

// Stop says why a body was not read to its end, although it may be a good one.
type Stop uint8

// The limits that end the reading of a body.
const (
	NotStopped      Stop = iota
	StoppedTooLarge      // it holds too many messages or texts
	StoppedBusy          // there is no memory for it now
	StoppedLate          // reading it took too long
)

// Stopped says which limit ended the reading of the body.
func (c *Conversation) Stopped() Stop { return c.stopped }

// stop gives a body up; the first reason counts. It returns false, which is
// what its callers return.
func (c *Conversation) stop(s Stop) bool {
	if c.stopped == NotStopped {
		c.stopped = s
	}
	return false
}

func (c *Conversation) tooLarge() bool { return c.stop(StoppedTooLarge) }

// room asks for memory before it is allocated.
func (c *Conversation) room(bytes int) bool {
	return c.limits.Room == nil || c.limits.Room.Grow(bytes) || c.stop(StoppedBusy)
}

// maxMessages is how many items a body may hold.
func (c *Conversation) maxMessages() int {
	if c.limits.Messages > 0 {
		return c.limits.Messages
	}
	return usualMessages
}

// InTime reports whether there is time left to go on with a body.
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

// after is InTime, asked once for so many bytes that were worked on.
func (c *Conversation) after(bytes int) bool {
	if c.worked += bytes; c.worked < stride {
		return true
	}
	c.worked = 0
	return c.InTime()
}

// Size is what c keeps for the next body, in bytes.
func (c *Conversation) Size() int {
	return cap(c.Messages)*sizeOfMessage + cap(c.spans)*sizeOfSpan + cap(c.refs)*sizeOfSpan + cap(c.scratch) + cap(c.inserts)
}

// addMessage notes a message.
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

// addSpan notes a text.
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
