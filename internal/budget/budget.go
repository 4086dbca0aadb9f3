// Package budget owns the limit on the RAM of all requests together. It determines the
// available RAM and returns unneeded RAM to the machine.
package budget

import "sync/atomic"

// small is the largest share that may use the reserve for small requests, so that a few
// large requests leave RAM for the others.
const small = 256 << 10

// Budget is a number of bytes that requests share. It is safe for concurrent use. A nil
// Budget has no limit.
type Budget struct{ max, used atomic.Int64 }

// New returns a budget of the given bytes.
func New(bytes int) *Budget {
	b := &Budget{}
	b.Set(bytes)
	return b
}

// Set changes the size of the budget. Existing shares keep their bytes.
func (b *Budget) Set(bytes int) { b.max.Store(int64(bytes)) }

// Used returns how many bytes are taken.
func (b *Budget) Used() int {
	if b == nil {
		return 0
	}
	return int(b.used.Load())
}

// bound returns the limit on all shares together for a share of this size.
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

// Share is one request's part of a budget. It has one owner goroutine at a time. The zero
// Share has no limit.
type Share struct {
	of   *Budget
	held int
}

// Held returns how many bytes the share holds.
func (s *Share) Held() int { return s.held }

// Grow takes n more bytes, before their allocation. It returns false, without taking any,
// if the budget is exhausted.
func (s *Share) Grow(n int) bool {
	if s.of != nil && !s.of.take(n, s.held) {
		return false
	}
	s.held += n
	return true
}

// Resize adjusts the share to a buffer that grows or shrinks from before to now bytes. It
// returns false if the budget is exhausted.
func (s *Share) Resize(before, now int) bool {
	if now > before {
		return s.Grow(now - before)
	}
	s.Shrink(s.held - (before - now))
	return true
}

// Regrow copies a buffer into a larger one of size bytes, and releases the old one. It
// returns the old buffer and false if the budget is exhausted.
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
