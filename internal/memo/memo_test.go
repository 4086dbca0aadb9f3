package memo

import "testing"

// TestMemo_Limit checks that the memo stays within its limit, refuses an entry larger than a quarter
// of it, and separates owners.
func TestMemo_Limit(t *testing.T) {
	m := New(1 << 20)
	put := func(name uint64, bytes int) {
		m.Update(Key{Owner{'a'}, name}, func(any) (any, int) { return name, bytes })
	}
	for n := range uint64(10_000) {
		if put(n, 5000); m.Bytes() > 1<<20 {
			t.Fatalf("%d bytes are taken of %d", m.Bytes(), 1<<20)
		}
	}
	before := m.Bytes()
	put(20_000, 1<<20/4)
	if v := m.Get(Key{Owner{'a'}, 20_000}); v != nil || m.Bytes() != before {
		t.Errorf("%v is remembered, which leaves little room", v)
	}
	if v := m.Get(Key{Owner{'b'}, 9_999}); v != nil {
		t.Errorf("another owner gets %v", v)
	}
}

// TestNothingTakesNoRoom checks that a session without a value has no entry.
func TestNothingTakesNoRoom(t *testing.T) {
	m, k := New(1<<20), Key{Name: 1}
	for _, value := range []any{"a", nil} {
		m.Update(k, func(any) (any, int) { return value, 100 })
		if got := m.Get(k); got != value {
			t.Errorf("got %v, want %v", got, value)
		}
	}
	if n, _ := m.all.Held(); n != 0 || m.Bytes() != 0 {
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

// Bytes returns the size of all entries.
func (m *Memo) Bytes() int {
	_, size := m.all.Held()
	return size
}
