package memo

import "testing"

// TestSharesAreKept checks that an owner with many entries displaces no entries of another
// kind, and that the memo refuses an entry larger than a quarter of its kind's part.
func TestSharesAreKept(t *testing.T) {
	m := New(1 << 20)
	put := func(k Space, owner byte, name, bytes int) {
		m.Update(Key{k, Owner{owner}, uint64(name)}, func(any) (any, int) { return name, bytes }) // #nosec G115 -- a count
	}
	held := func(k Space, owner byte) (n int) {
		for name := range 100 {
			if v, ok := m.Get(Key{k, Owner{owner}, uint64(name)}).(int); ok && v == name { // #nosec G115 -- a count
				n++
			}
		}
		return n
	}
	for n := range 100 {
		put(Sessions, 'a', n, 1000)
	}
	for n := range 10_000 {
		put(Turns, 'h', n, 5000)
		if m.Bytes() > 1<<20 {
			t.Fatalf("%d bytes are taken of %d", m.Bytes(), 1<<20)
		}
	}
	if n := held(Sessions, 'a'); n != 100 {
		t.Errorf("of 100 sessions %d are known after others filled the rest", n)
	}
	before := m.Bytes()
	put(Sessions, 'h', 0, 1<<19/4)
	if v := m.Get(Key{Sessions, Owner{'h'}, 0}); v != nil || m.Bytes() != before {
		t.Errorf("%v is remembered, which leaves little room", v)
	}
	if v := m.Get(Key{Sessions, Owner{'b'}, 1}); v != nil {
		t.Errorf("another owner gets %v", v)
	}
}

// TestNothingTakesNoRoom checks that a session without a value has no entry.
func TestNothingTakesNoRoom(t *testing.T) {
	m, k := New(1<<20), Key{Kind: Sessions, Name: 1}
	for _, value := range []any{"a", nil} {
		m.Update(k, func(any) (any, int) { return value, 100 })
		if got := m.Get(k); got != value {
			t.Errorf("got %v, want %v", got, value)
		}
	}
	if n, _ := m.kinds[Sessions].Held(); n != 0 || m.Bytes() != 0 {
		t.Errorf("%d entries of %d bytes for no value, want none", n, m.Bytes())
	}
}

// TestLRUStaysWithinItsBounds checks that the LRU stays below its limit in bytes and keeps
// the entries used last.
func TestLRUStaysWithinItsBounds(t *testing.T) {
	c := NewLRU[int, int](100)
	for i := range 1000 {
		c.Add(i, i, 10)
		c.Add(i, i, 20) // replaces the entry
		c.Get(0)
	}
	if n, size := c.Held(); n != 5 || size > 100 {
		t.Errorf("%d entries, %d bytes; want 5 entries, up to 100 bytes", n, size)
	}
	if v, ok := c.Get(999); !ok || v != 999 {
		t.Errorf("the newest entry, 999: %d, %v; want 999", v, ok)
	}
	if _, ok := c.Get(0); !ok {
		t.Error("entry 0 is gone, though it was always in use")
	}
	c.Add(1, 1, 1000)
	if n, size := c.Held(); n != 0 || size != 0 {
		t.Errorf("an entry over the limit leaves %d entries, %d bytes; want none", n, size)
	}
}
