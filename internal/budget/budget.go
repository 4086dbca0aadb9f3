// Package budget owns the bound on the RAM that all requests together hold. It knows
// how much RAM there is, and gives unneeded RAM back to the machine. It must not know
// what the RAM holds. It imports none of our packages.
package budget

import "sync/atomic"

// small is how many bytes a request may hold and still take from the part of a budget
// that is reserved for small ones: so a few large requests leave RAM for the others.
const small = 256 << 10

// Budget is a number of bytes that requests share. It is safe for concurrent use.
// A nil Budget has no bound.
type Budget struct{ max, used atomic.Int64 }

// New returns a budget of a number of bytes.
func New(bytes int) *Budget {
	b := &Budget{}
	b.Set(bytes)
	return b
}

// Set changes the number of bytes. What was taken stays taken.
func (b *Budget) Set(bytes int) { b.max.Store(int64(bytes)) }

// Used returns how many bytes are taken.
func (b *Budget) Used() int {
	if b == nil {
		return 0
	}
	return int(b.used.Load())
}

// bound returns how many bytes may be taken in all once a share holds this many.
func (b *Budget) bound(held int) int64 {
	most := b.max.Load()
	if held > small {
		most -= most / 4
	}
	return most
}

func (b *Budget) take(n, held int) bool {
	for {
		used := b.used.Load()
		if used+int64(n) > b.bound(held+n) {
			return false
		}
		if b.used.CompareAndSwap(used, used+int64(n)) {
			return true
		}
	}
}

// Share returns an empty share.
func (b *Budget) Share() Share { return Share{of: b} }

// Share is the part of a budget that one request has taken. It belongs to one goroutine
// at a time. The zero Share has no bound.
type Share struct {
	of   *Budget
	held int
}

// Held returns how many bytes the share holds.
func (s *Share) Held() int { return s.held }

// Grow takes n bytes more, before they are allocated. It returns false, and takes
// nothing, when there are too few.
func (s *Share) Grow(n int) bool {
	if s.of != nil && !s.of.take(n, s.held) {
		return false
	}
	s.held += n
	return true
}

// Fits reports whether n bytes more could be taken now.
func (s *Share) Fits(n int) bool {
	return s.of == nil || s.of.used.Load()+int64(n) <= s.of.bound(s.held+n)
}

// Resize takes or gives back the difference when a buffer grows or shrinks from before
// to now bytes. It returns false when there are too few.
func (s *Share) Resize(before, now int) bool {
	if now > before {
		return s.Grow(now - before)
	}
	s.Shrink(s.held - (before - now))
	return true
}

// Regrow moves a buffer into one of size bytes, which is more than it has, and gives back
// the old one. It returns false, and the buffer as it is, when there are too few.
func (s *Share) Regrow(b []byte, size int) ([]byte, bool) {
	if !s.Grow(size) {
		return b, false
	}
	before := cap(b)
	b = append(make([]byte, 0, size), b...)
	s.Shrink(s.held - before)
	return b, true
}

// Shrink gives back all but n bytes.
func (s *Share) Shrink(n int) {
	n = max(n, 0)
	if n >= s.held {
		return
	}
	if s.of != nil {
		s.of.used.Add(int64(n - s.held))
	}
	s.held = n
}

// Release gives everything back.
func (s *Share) Release() { s.Shrink(0) }
