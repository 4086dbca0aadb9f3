package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// maxAnswerHead limits the head of an upstream's answer, in bytes.
const maxAnswerHead = 256 << 10

var (
	errHeadTooLarge = fmt.Errorf("answer head is larger than %d bytes", maxAnswerHead)
	errBadHead      = errors.New("answer head is not HTTP/1.1")
	errBadFraming   = errors.New("answer head has conflicting lengths")
	errStray        = errors.New("answer head has a CR or a NUL within a line")
)

// AnswerHead is the head of an upstream's answer. Its slices point into the
// buffer it was parsed from.
type AnswerHead struct {
	Status   int
	Event    bool   // text/event-stream
	Encoding []byte // Content-Encoding
	Fields   []byte // field lines, each ended by CRLF or LF
	reason   []byte // includes the space before it
	size     int    // length of the head, including the empty line
	length   int64  // Content-Length, or -1
	chunked  bool
	keep     bool   // the connection is reusable
	conn     []byte // joined values of all Connection lines
}

// headEnd returns the length of the head at the start of b, including the empty line,
// or 0 if the head is incomplete.
func headEnd(b []byte) int {
	for i := 0; ; {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return 0
		}
		i += j + 1
		if i < len(b) && b[i] == '\n' {
			return i + 1
		}
		if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
			return i + 2
		}
	}
}

// parseHead parses the head in the first n bytes of b.
func parseHead(b []byte, n int, h *AnswerHead) error {
	*h = AnswerHead{size: n, length: -1}
	if stray(b[:n]) {
		return errStray
	}
	line, fields, _ := bytes.Cut(b[:n], []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	// "HTTP/1.x nnn" and then a space and a reason, or nothing.
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' {
		return errBadHead
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return errBadHead
		}
		h.Status = h.Status*10 + int(c-'0')
	}
	if h.Status < 100 || len(line) > 12 && line[12] != ' ' {
		return errBadHead
	}
	h.reason = line[12:]
	h.keep = line[7] != '0'
	h.Fields = fields
	return h.parseFields()
}

// stray reports whether a head contains a byte that some parsers accept as the end of a
// line and others do not: the next server could see other fields than the proxy (RFC
// 9112 section 2.2).
func stray(head []byte) bool {
	for rest := head; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			return bytes.IndexByte(head, 0) >= 0
		}
		if i+1 == len(rest) || rest[i+1] != '\n' {
			return true
		}
		rest = rest[i+2:]
	}
}

func (h *AnswerHead) parseFields() error {
	var coded bool
	for name, value := range fieldLines(h.Fields) {
		if len(name) == 0 {
			return errBadHead
		}
		switch {
		case FieldIs(name, "content-length"):
			n, ok := parseLength(value)
			if !ok || h.length >= 0 && h.length != n {
				return errBadFraming
			}
			h.length = n
		case FieldIs(name, "transfer-encoding"):
			coded = true
			h.chunked = lastTokenIs(value, "chunked")
		case FieldIs(name, "connection"):
			h.conn = joinLists(h.conn, value)
		case FieldIs(name, "content-type"):
			h.Event = hasPrefixFold(value, "text/event-stream")
		case FieldIs(name, "content-encoding"):
			h.Encoding = value
		}
	}
	if h.conn != nil {
		h.keep = !tokenIn(h.conn, "close") && (h.keep || tokenIn(h.conn, "keep-alive"))
	}
	if coded {
		// RFC 9112 section 6.3: the transfer coding overrides the length. A message
		// with both is suspect, so its connection is not reused.
		if h.length >= 0 || !h.chunked {
			h.keep = false
		}
		h.length = -1
	}
	return nil
}

// bodiless reports whether an answer with this head has no body, regardless of its
// fields.
func (h *AnswerHead) bodiless(headRequest bool) bool {
	return headRequest || h.Status < 200 || h.Status == 204 || h.Status == 304
}

// fieldLines yields the name and the trimmed value of each field line. A malformed line
// yields an empty name.
func fieldLines(b []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		for line := range lines(b) {
			name, value, ok := bytes.Cut(line, []byte{':'})
			if !ok || bytes.IndexByte(name, ' ') >= 0 || bytes.IndexByte(name, '\t') >= 0 {
				name = nil
			}
			if !yield(name, trimBlank(value)) {
				return
			}
		}
	}
}

// Line returns the first field with a name, in its original case, or nil.
func Line(b []byte, lower string) (name, value []byte) {
	for name, value := range fieldLines(b) {
		if FieldIs(name, lower) {
			return name, value
		}
	}
	return nil, nil
}

// joinLists joins the values of two lines of a field into one list (RFC 9110 section
// 5.3). A single one is not copied.
func joinLists(list, value []byte) []byte {
	if len(list) == 0 {
		return value
	}
	return append(append(slices.Clip(list), ','), value...)
}

// lines yields the lines of a head before the first empty one, without line ends.
func lines(b []byte) func(yield func(line []byte) bool) {
	return func(yield func(line []byte) bool) {
		for len(b) > 0 {
			line := b
			if i := bytes.IndexByte(b, '\n'); i < 0 {
				b = nil
			} else {
				line, b = bytes.TrimSuffix(b[:i], []byte{'\r'}), b[i+1:]
			}
			if len(line) == 0 || !yield(line) {
				return
			}
		}
	}
}

func trimBlank(b []byte) []byte { return bytes.Trim(b, " \t") }

// FieldIs compares a field name with a lower-case one.
func FieldIs(name []byte, lower string) bool {
	return len(name) == len(lower) && hasPrefixFold(name, lower)
}

// FieldIn reports whether one of the lower-case names is a field's.
func FieldIn(name []byte, lower []string) bool {
	return slices.ContainsFunc(lower, func(l string) bool { return FieldIs(name, l) })
}

func hasPrefixFold(b []byte, lower string) bool {
	if len(b) < len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// tokens yields the members of a comma-separated list.
func tokens(list []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(list) > 0 {
			var t []byte
			t, list, _ = bytes.Cut(list, []byte{','})
			if t = trimBlank(t); len(t) > 0 && !yield(t) {
				return
			}
		}
	}
}

func tokenIn(list []byte, lower string) bool {
	for t := range tokens(list) {
		if FieldIs(t, lower) {
			return true
		}
	}
	return false
}

func lastTokenIs(list []byte, lower string) bool {
	last := false
	for t := range tokens(list) {
		last = FieldIs(t, lower)
	}
	return last
}

func parseLength(b []byte) (int64, bool) {
	n, err := strconv.ParseUint(string(b), 10, 63)
	return int64(n), err == nil // #nosec G115 -- 63 bits fit
}

// hopByHop reports whether a field applies to one connection only and must not be
// forwarded (RFC 9110 section 7.6.1). Tunnel handles Upgrade.
func hopByHop(name []byte) bool { return FieldIn(name, hopFields) }

var hopFields = []string{"te", "upgrade", "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"}

// namedBy reports whether the Connection field lists a field as hop-by-hop.
func namedBy(connection, name []byte) bool {
	if len(connection) == 0 {
		return false
	}
	for t := range tokens(connection) {
		if bytes.EqualFold(t, name) {
			return true
		}
	}
	return false
}
