package proxy

import "testing"

// TestIsTitle: a short line of the conversation's own words that is no sentence.
func TestIsTitle(t *testing.T) {
	const history = "The harbour gate code is 4711, please note it.\nNoted: the harbour gate code is 4711."
	const prompt = "Name the conversation above in at most five words. Answer with the name only, without quotation marks."
	for _, tc := range []struct {
		name, history, asks, answer string
		want                        bool
	}{
		{"title", history, prompt, "Harbour gate", true},
		{"short question", history, "Which gate was it?", "Harbour gate", false},
		{"sentence", history, prompt, "The harbour gate code is 4711.", false},
		{"new words", history, prompt, "Paris", false},
		{"first turn or tools", "", prompt, "Harbour gate", false},
		{"several lines", history, prompt, "Harbour\ngate", false},
	} {
		if got := isTitle(tc.history, tc.asks, tc.answer); got != tc.want {
			t.Errorf("%s: isTitle(%q) = %v, want %v", tc.name, tc.answer, got, tc.want)
		}
	}
}

// TestNormalized: neither the escapes of JSON nor marks count.
func TestNormalized(t *testing.T) {
	if got, want := string(normalized([]byte(`He said: \"Gate\n4711\"`), 12)), "hesaidgate47"; got != want {
		t.Errorf("normalized = %q, want %q", got, want)
	}
}
