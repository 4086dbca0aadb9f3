// Package budget owns the bound on what requests hold in memory, all of them
// together, knows how much memory there is, and gives back what is not needed. It
// must not know what is held.
// It imports none of our packages.
package budget

import "sync/atomic"

// small is what a request may hold, in bytes, and still take of the part of a
// budget that is kept for small ones: a few large requests leave the others
// their memory.
const small = 256 << 10

// Budget is a number of bytes that many share. It is safe for concurrent use.
// A nil Budget has no bound.
type Budget struct{ max, used atomic.Int64 }

// New returns a budget of so many bytes.
func New(bytes int) *Budget {
	b := &Budget{}
	b.Set(bytes)
	return b
}

// Set changes how many bytes there are. What was taken stays taken.
func (b *Budget) Set(bytes int) { b.max.Store(int64(bytes)) }

// Used is how many bytes are taken.
func (b *Budget) Used() int {
	if b == nil {
		return 0
	}
	return int(b.used.Load())
}

// bound is what may be taken in all by somebody who then holds so much.
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

// Share is what one request has taken of a budget. It belongs to one goroutine
// at a time. The zero Share has no bound.
type Share struct {
	of   *Budget
	held int
}

// Held is how many bytes the share holds.
func (s *Share) Held() int { return s.held }

// Grow takes n bytes more, before they are allocated, and reports whether there
// were so many.
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

// Resize takes or gives back what a buffer of now bytes needs that was one of
// before. It reports whether there were so many.
func (s *Share) Resize(before, now int) bool {
	if now > before {
		return s.Grow(now - before)
	}
	s.Shrink(s.held - (before - now))
	return true
}

// Shrink gives back what the share holds above n bytes.
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
