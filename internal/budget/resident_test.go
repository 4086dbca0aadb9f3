package budget

import "testing"

// TestTheProgramGoesOn after its pages were given back.
func TestTheProgramGoesOn(t *testing.T) {
	for range 3 {
		GiveBack()
	}
}
