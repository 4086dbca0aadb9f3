package budget

import (
	"strings"
	"syscall"
	"testing"
)

// TestTheProgramGoesOn: its code runs, and its constants read the same, after its pages
// were given back.
func TestTheProgramGoesOn(t *testing.T) {
	constants := func() string {
		var b strings.Builder
		for n := range 130 {
			b.WriteString(syscall.Errno(n).Error())
		}
		return b.String()
	}
	want := constants()
	for range 3 {
		GiveBack()
		if got := constants(); got != want {
			t.Fatalf("after GiveBack the constants read %q, want %q", got, want)
		}
	}
}
