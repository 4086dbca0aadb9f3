package dialect

import (
	"encoding/binary"
	"math/bits"
)

// maxDepth bounds the nesting of a body that is read.
const maxDepth = 200

// scanner walks over JSON text without decoding it. It accepts valid JSON
// only; of strings it does not check the UTF-8.
type scanner struct {
	b     []byte
	i     int
	depth int

	next   int         // where the clock is looked at again
	inTime func() bool // nil: there is no hurry
}

// onTime is asked at least once in a stride of what takes time: the members of
// objects and arrays, and escapes.
func (s *scanner) onTime(at int) bool {
	if at < s.next || s.inTime == nil {
		return true
	}
	s.next = at + stride
	return s.inTime()
}

// span is a JSON string's inside: b[start:end].
type span struct {
	start, end int
	escaped    bool // it holds a backslash
	unicode    bool // it holds a \u
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return
		}
	}
}

// is skips white space and then c, if it stands there.
func (s *scanner) is(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// peek returns the first byte of the next value, or 0.
func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// string reads a string, eight bytes at a time: this loop is most of what
// memory costs a request with a long history.
func (s *scanner) string() (span, bool) {
	if !s.is('"') {
		return span{}, false
	}
	const ones, high = 0x0101010101010101, 0x8080808080808080
	out := span{start: s.i}
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
			return span{}, false
		}
		switch c := s.b[j]; {
		case c == '"':
			out.end, s.i = j, j+1
			return out, true
		case c == '\\':
			n := escapeLen(s.b[j:])
			if n == 0 || !s.onTime(j) {
				return span{}, false
			}
			out.escaped = true
			out.unicode = out.unicode || n == 6
			j += n
		case c < 0x20:
			return span{}, false
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

// skip reads any value.
func (s *scanner) skip() bool {
	switch s.peek() {
	case '"':
		_, ok := s.string()
		return ok
	case '{':
		return s.object(func([]byte) bool { return s.skip() })
	case '[':
		return s.array(func(int) bool { return s.skip() })
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// object reads an object; member reads each value and gets its key, which it
// must not keep. A key with an escape is given as nil: no name that matters is
// written so, and one that was must not be taken for another.
func (s *scanner) object(member func(key []byte) bool) bool {
	if !s.is('{') || !s.down() {
		return false
	}
	if s.is('}') {
		s.depth--
		return true
	}
	for {
		key, ok := s.string()
		if !ok || !s.is(':') || !s.onTime(s.i) {
			return false
		}
		name := s.b[key.start:key.end]
		if key.escaped {
			name = nil
		}
		if !member(name) {
			return false
		}
		if s.is('}') {
			s.depth--
			return true
		}
		if !s.is(',') {
			return false
		}
	}
}

// array reads an array; element reads each value and gets its index.
func (s *scanner) array(element func(i int) bool) bool {
	if !s.is('[') || !s.down() {
		return false
	}
	if s.is(']') {
		s.depth--
		return true
	}
	for i := 0; ; i++ {
		if !s.onTime(s.i) || !element(i) {
			return false
		}
		if s.is(']') {
			s.depth--
			return true
		}
		if !s.is(',') {
			return false
		}
	}
}

func (s *scanner) down() bool {
	s.depth++
	return s.depth <= maxDepth
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

func (s *scanner) number() bool {
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

func (s *scanner) have(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
