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

// Bytes returns the size of all entries.
func (m *Memo) Bytes() int {
	_, size := m.all.Held()
	return size
}
