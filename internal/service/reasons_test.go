package service

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// TestEveryReasonIsASentence: a page that shows a reason without one would show a word.
func TestEveryReasonIsASentence(t *testing.T) {
	for _, r := range inject.Reasons {
		if reasons[r] == "" {
			t.Errorf("%q is explained by nothing", r)
		}
	}
	if len(reasons) != len(inject.Reasons) {
		t.Errorf("%d reasons are explained, and there are %d", len(reasons), len(inject.Reasons))
	}
}
