package dialect

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"
)

// MaxAnswer is the stored part of an answer's text, in bytes.
const MaxAnswer = 1 << 20

// Reader assembles one answer. It is used by one goroutine, must not retain the bytes that
// it is given, must not block, and never fails: it ignores unknown input.
type Reader interface {
	// Event takes one server-sent event: its name (may be empty) and its data
	// with the lines joined by "\n".
	Event(name, data []byte)

	// Body takes a whole answer that was not sent as events.
	Body(body []byte)

	// Answer returns the answer assembled so far.
	Answer() Answer
}

// Document parses the JSON that a Reader was given, without a copy: the result is valid
// only as long as data.
func Document(data []byte) gjson.Result {
	return gjson.Parse(unsafe.String(unsafe.SliceData(data), len(data)))
}

// Holds reports whether a value of a Document holds anything, in the sense of Scanner.Mark.
func Holds(v gjson.Result) (holds bool) {
	s := NewScanner([]byte(v.Raw))
	s.Mark(&holds)
	return holds
}

// IsDone reports whether an event is the mark with which many servers end a stream.
func IsDone(data []byte) bool { return bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) }

// Said gathers the text of an answer, at most MaxAnswer bytes. Its zero value is
// ready.
type Said struct {
	prefill string // the beginning of the answer, from the request
	text    strings.Builder
	pieces  int
	newest  int  // offset of the newest piece
	apart   bool // the next piece begins another text
	full    bool // further text is dropped
}

// Begun returns a Said for an answer that continues a prefill.
func Begun(prefill string) Said { return Said{prefill: prefill} }

// Next begins another text, on a line of its own.
func (t *Said) Next() { t.apart = t.text.Len() > 0 }

// Add adds a piece of the text.
func (t *Said) Add(piece string) {
	if piece == "" || t.full {
		return
	}
	if t.apart {
		t.text.WriteByte('\n')
		t.apart = false
	}
	if room := max(0, MaxAnswer-t.text.Len()); len(piece) > room {
		for room > 0 && !utf8.RuneStart(piece[room]) {
			room--
		}
		piece, t.full = piece[:room], true
	}
	t.pieces, t.newest = t.pieces+1, t.text.Len()
	t.text.WriteString(piece)
}

// Text returns the text that a person sees, including the prefill, which some servers
// repeat. Some repeat the whole text in the last piece.
func (t *Said) Text() string {
	text := t.text.String()
	if before := WithoutThoughts(text[:t.newest]); before == strings.TrimSpace(text[t.newest:]) && (t.pieces > 2 || len(before) >= Telling) {
		text = text[:t.newest]
	}
	if text != "" && !strings.HasPrefix(text, t.prefill) {
		text = t.prefill + text
	}
	return WithoutThoughts(text)
}

// Answer is a model's answer.
type Answer struct {
	Text string // the visible text, without reasoning
	End  End

	// ID and Item are the ids by which the next request may refer to the answer, and to the
	// model's message in it; each may be empty.
	ID, Item string

	Keys  Keys // ids that the provider gave to the answer and its tool calls
	Usage Usage
	Calls *Calls // of tools; nil if there are none
}

// Assembly is the part of a Reader that most APIs share.
type Assembly struct {
	Said   Said
	Calls  *Calls // of tools that the client has; nil if there are none
	End    End
	Over   bool // all of the answer was read
	Failed bool
	Keys   Keys
	Usage  Usage
}

// Call adds a piece to the arguments of the n-th call.
func (a *Assembly) Call(n int, arguments string) {
	if a.Calls == nil {
		a.Calls = &Calls{}
	}
	a.Calls.Add(n, arguments)
}

// Finish takes the provider's word for the end of the answer. A refusal takes precedence.
func (a *Assembly) Finish(word string) {
	switch end := EndOf(word); {
	case end == EndError:
		a.Failed = true
	case end != EndUnknown && a.End != EndFilter:
		a.End = end
	}
}

// Answer implements Reader.
func (a *Assembly) Answer() Answer {
	if a.Failed {
		return Answer{End: EndError}
	}
	return Answer{Text: a.Said.Text(), End: a.End, Keys: a.Keys, Usage: a.Usage, Calls: a.Calls}.Ended(a.Over)
}

// Keys are ids that a provider gave to an answer, its message and its tool calls. Clients
// write them into their transcripts. The zero value is ready.
type Keys []string

const (
	maxKeys = 16
	maxKey  = 128 // bytes
)

// Add adds an id, unless it is empty, known, or beyond the bounds.
func (k *Keys) Add(id string) {
	if id != "" && len(id) <= maxKey && len(*k) < maxKeys && !slices.Contains(*k, id) {
		*k = append(*k, strings.Clone(id))
	}
}

// End is the way in which an answer ended.
type End uint8

// The ends of an answer. Only EndStop and EndLength finish a turn.
const (
	EndUnknown   End = iota // cut off, or still being made
	EndStop                 // finished
	EndLength               // cut at the token limit: stored, marked as partial
	EndToolCalls            // the turn continues
	EndFilter               // withheld or refused
	EndError                // an error in mid-stream
)

// Final reports whether the answer finishes its turn.
func (e End) Final() bool { return e == EndStop || e == EndLength }

// EndOf returns the end for a provider's word. All APIs share the words, because gateways
// use the words of one API in the answers of another. A provider that gives a reason has
// finished, so an unknown word is an end.
func EndOf(word string) End {
	switch word = strings.ToLower(word); word {
	case "", "finish_reason_unspecified":
		return EndUnknown
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return EndLength
	case "tool_calls", "tool_call", "tool_use", "function_call", "pause_turn", "compaction":
		return EndToolCalls
	case "content_filter", "content_filtered", "refusal", "guardrail_intervened", "safety", "recitation", "language", "blocklist",
		"prohibited_content", "spii", "image_safety", "image_prohibited_content", "image_recitation":
		return EndFilter
	case "abort", "cancelled", "unexpected_tool_call":
		return EndError
	}
	if strings.HasPrefix(word, "error") || strings.HasPrefix(word, "malformed_") {
		return EndError
	}
	return EndStop
}

// Ended determines the end of an answer. An answer with content that was read to its last byte
// has ended, even without a word for that. If it calls tools, the turn continues with their
// results, even if the end says "stop": OpenAI ends a call that the request forced with "stop",
// and many compatible servers end all calls that way.
func (a Answer) Ended(over bool) Answer {
	if over && a.End == EndUnknown && (a.Text != "" || a.Calls != nil) {
		a.End = EndStop
	}
	if a.Calls != nil && a.End == EndStop {
		a.End = EndToolCalls
	}
	return a
}

// Usage is the number of tokens of a request and its answer, as reported by the provider;
// zero without a report.
type Usage struct {
	Input  int // of the request, including Cached
	Cached int // read from the provider's prompt cache
	Output int
}

// OpenAIUsage reads the usage of Chat Completions and of the Responses API, which use
// different names for the same numbers.
func OpenAIUsage(u gjson.Result) (out Usage) {
	u.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens":
			out.Input = Tokens(value)
		case "completion_tokens", "output_tokens":
			out.Output = Tokens(value)
		case "prompt_tokens_details", "input_tokens_details":
			out.Cached = Tokens(value.Get("cached_tokens"))
		}
		return true
	})
	return out
}

// maxTokens caps the reported numbers of tokens.
const maxTokens = 1 << 30

// Tokens reads a number of tokens in a provider's report.
func Tokens(v gjson.Result) int { return int(min(max(v.Int(), 0), maxTokens)) }

// WithoutThoughts returns an answer's text without the reasoning that some models write
// into it. Reasoning without an end stays.
func WithoutThoughts(s string) string { return strings.TrimSpace(WithoutElement(s, "think")) }
