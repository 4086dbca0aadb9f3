package budget

import "testing"

func TestAddresses(t *testing.T) {
	for span, want := range map[string][2]uint64{"00400000-016b0000": {0x400000, 0x16b0000}, "7f-": {}, "x-y": {}, "": {}} {
		if from, to := addresses(span); from != want[0] || to != want[1] {
			t.Errorf("%q is %x to %x", span, from, to)
		}
	}
}
