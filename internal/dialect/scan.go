package dialect

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth bounds the nesting of a body's values.
const maxDepth = 200

// Scanner walks over JSON text without decoding it. It accepts valid JSON only, but
// does not check that strings are UTF-8.
type Scanner struct {
	b     []byte
	i     int
	depth int

	next  int           // offset of the next check of the clock
	hurry *Conversation // has the time limit; nil for none
}

// NewScanner returns a scanner of b without a time limit.
func NewScanner(b []byte) Scanner { return Scanner{b: b, next: len(b)} }

// Offset returns the offset of the next value, or of the white space before it.
func (s *Scanner) Offset() int { return s.i }

func (s *Scanner) Raw(v Span) []byte { return s.b[v.Start:v.End] }

// atEnd reports whether only white space is left.
func (s *Scanner) atEnd() bool {
	s.space()
	return s.i == len(s.b)
}

// Value skips any value and returns its span.
func (s *Scanner) Value() (v Span, ok bool) {
	s.space()
	v.Start = s.i
	ok = s.Skip()
	v.End = s.i
	return v, ok
}

// onTime checks the clock once in a stride. Callers call it at least that often: at
// members of objects and arrays, and at escapes.
func (s *Scanner) onTime(at int) bool {
	if at < s.next || s.hurry == nil {
		return true
	}
	s.next = at + stride
	return s.hurry.InTime()
}

// Span is a JSON string's inside: b[start:end].
type Span struct {
	Start, End int
	Escaped    bool // it holds a backslash
	Unicode    bool // it holds a \u

	// Of a text that is a part of a message:
	cached bool  // the provider caches the request up to its end
	part   int32 // bytes from the beginning of the part to Start; 0 if it is no part
}

func (s *Scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// skip skips white space and then c, and reports whether it found c.
func (s *Scanner) skip(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// Peek returns the first byte of the next value, or 0.
func (s *Scanner) Peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// Quoted reads a string, eight bytes at a time: this loop is most of the proxy's cost for a
// request with a long history.
func (s *Scanner) Quoted() (Span, bool) {
	if !s.skip('"') {
		return Span{}, false
	}
	const ones, high = 0x0101010101010101, 0x8080808080808080
	out := Span{Start: s.i}
	for j := s.i; ; {
		for j+8 <= len(s.b) {
			w := binary.LittleEndian.Uint64(s.b[j:])
			q, e := w^(ones*'"'), w^(ones*'\\')
			// The lowest marked byte is a quote, a backslash or a control.
			m := ((q-ones)&^q | (e-ones)&^e | (w-ones*0x20)&^w) & high
			if m != 0 {
				j += bits.TrailingZeros64(m) / 8
				break
			}
			j += 8
		}
		if j >= len(s.b) {
			return Span{}, false
		}
		switch c := s.b[j]; {
		case c == '"':
			out.End, s.i = j, j+1
			return out, true
		case c == '\\':
			n := escapeLen(s.b[j:])
			if n == 0 || !s.onTime(j) {
				return Span{}, false
			}
			out.Escaped = true
			out.Unicode = out.Unicode || n == 6
			j += n
		case c < 0x20:
			return Span{}, false
		default:
			j++
		}
	}
}

// escapeLen returns the length of the escape at the start of b, or 0.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if hexValue(c) < 0 {
				return 0
			}
		}
		return 6
	}
	return 0
}

func hexValue(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

// Skip reads any value.
func (s *Scanner) Skip() bool {
	switch s.Peek() {
	case '"':
		_, ok := s.Quoted()
		return ok
	case '{':
		return s.Object(func([]byte) bool { return s.Skip() })
	case '[':
		return s.Array(func(int) bool { return s.Skip() })
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// Mark reads any value, and sets mark if the value holds anything: a number, true, or a text
// that is not empty. An empty list or object means the same as null.
func (s *Scanner) Mark(mark *bool) bool {
	switch s.Peek() {
	case '{':
		return s.Object(func([]byte) bool { return s.Mark(mark) })
	case '[':
		return s.Array(func(int) bool { return s.Mark(mark) })
	case '"':
		text, ok := s.Quoted()
		*mark = *mark || text.End > text.Start
		return ok
	case 'n', 'f', 0:
	default:
		*mark = true
	}
	return s.Skip()
}

// Empty reads any value, and reports whether it holds nothing.
func (s *Scanner) Empty() bool {
	holds := false
	return s.Mark(&holds) && !holds
}

// Object reads an object; member reads each value and gets its decoded key, which it must not
// retain.
func (s *Scanner) Object(member func(key []byte) bool) bool {
	if !s.skip('{') || !s.down() {
		return false
	}
	if s.skip('}') {
		s.depth--
		return true
	}
	return s.members(member)
}

// members reads an object from one of its members on.
func (s *Scanner) members(member func(key []byte) bool) bool {
	for {
		key, ok := s.Quoted()
		if !ok || !s.skip(':') || !s.onTime(s.i) {
			return false
		}
		name := s.b[key.Start:key.End]
		if key.Escaped {
			name = appendText(nil, name)
		}
		if !member(name) {
			return false
		}
		if more, ended := s.more('}'); !more {
			return ended
		}
	}
}

// more reports whether another value follows in an object or array that ends with end, and
// if not, whether it has ended there.
func (s *Scanner) more(end byte) (more, ended bool) {
	if s.skip(end) {
		s.depth--
		return false, true
	}
	return s.skip(','), false
}

// Array reads an array; element reads each value and gets its index.
func (s *Scanner) Array(element func(i int) bool) bool {
	if !s.skip('[') || !s.down() {
		return false
	}
	if s.skip(']') {
		s.depth--
		return true
	}
	return s.elements(0, element)
}

// elements reads an array from its element i on.
func (s *Scanner) elements(i int, element func(i int) bool) bool {
	for ; ; i++ {
		if !s.onTime(s.i) || !element(i) {
			return false
		}
		if more, ended := s.more(']'); !more {
			return ended
		}
	}
}

func (s *Scanner) down() bool {
	s.depth++
	return s.depth <= maxDepth
}

func (s *Scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

func (s *Scanner) number() bool {
	s.have('-')
	if !s.have('0') && !s.digits() {
		return false
	}
	if s.have('.') && !s.digits() {
		return false
	}
	if s.have('e') || s.have('E') {
		if !s.have('+') {
			s.have('-')
		}
		return s.digits()
	}
	return true
}

func (s *Scanner) have(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *Scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
