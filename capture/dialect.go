package capture

// Dialect reads one API's answers.
type Dialect interface {
	// NewReader returns a reader for one answer.
	NewReader() Reader
}

// Reader assembles one answer. It is used by one goroutine, must not retain
// the bytes it is given, must not block, and never fails: what it does not
// understand it ignores.
type Reader interface {
	// Event takes one server-sent event: its name (may be empty) and its data
	// with the lines joined by "\n".
	Event(name, data []byte)

	// Body takes a whole answer that was not streamed.
	Body(body []byte)

	// Answer says what has been assembled so far.
	Answer() Answer
}

// Answer is what a model said.
type Answer struct {
	Text string // what a person sees, without reasoning
	End  End

	// ID and Item are by what the next request may refer to the answer, and to
	// what the model said in it; each may be empty.
	ID, Item string

	Usage Usage
}

// End says how an answer ended.
type End uint8

// The ends of an answer. Only EndStop and EndLength finish a turn.
const (
	EndUnknown   End = iota // cut off, or never said
	EndStop                 // finished
	EndLength               // cut at the token limit: kept, marked as partial
	EndToolCalls            // the turn goes on
	EndFilter               // withheld or refused
	EndError                // an error in mid-stream
)

// Final reports whether the answer finishes its turn.
func (e End) Final() bool { return e == EndStop || e == EndLength }

// after is the end of an answer that called tools, or did not: whatever it says
// of itself, the turn goes on with what they bring. OpenAI ends a call that the
// request forced with "stop", and many compatible servers end all calls so.
func (e End) after(calls bool) End {
	if calls && e == EndStop {
		return EndToolCalls
	}
	return e
}
