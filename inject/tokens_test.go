package inject

import (
	"strings"
	"testing"
)

// TestTokensAreAnEstimate by script: four characters of most, one of those without spaces
// and of Korean.
func TestTokensAreAnEstimate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "cat": 1, "My cat is called Miso.": 6, strings.Repeat("я", 40): 10,
		"私の猫": 3, "고양이": 3, "我的猫叫Miso": 5,
	} {
		if got := Tokens(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}
