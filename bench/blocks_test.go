package main

import (
	"strings"
	"testing"
)

func TestBlockShare(t *testing.T) {
	const with, empty, late = "recalled; facts=2; chars=80; ms=0", "recalled; facts=0; chars=0; ms=1", "timeout; facts=0; chars=0; ms=150"
	same, fresh := func(int) string { return kept }, func(int) string { return "number 1" }
	for _, tc := range []struct {
		name    string
		target  *target
		headers []string
		share   float64
		err     string // part of the error
	}{
		{"kept", &target{recalls: true, history: same}, []string{with, with}, 1, ""},
		{"kept, but one is missing", &target{recalls: true, history: same}, []string{with, late}, 0, `1 of 2 requests had no block, the last of them with "timeout;`},
		{"kept, but one is empty", &target{recalls: true, history: same}, []string{empty, with}, 0, `1 of 2 requests had no block`},
		{"new turns", &target{recalls: true, history: fresh}, []string{with, late, late, late}, 0.25, ""},
		{"no memory", &target{history: same}, []string{"", ""}, 0, ""},
		{"nothing answered", &target{recalls: true, history: same}, nil, 0, ""},
	} {
		for _, h := range tc.headers {
			tc.target.blocks.count(h)
		}
		share, err := tc.target.blockShare()
		if share != tc.share || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: blockShare() = %v, %v; want %v, %q", tc.name, share, err, tc.share, tc.err)
		}
		if answers, _, _ := tc.target.blocks.take(); answers != 0 {
			t.Errorf("%s: %d answers are counted twice", tc.name, answers)
		}
	}
}
