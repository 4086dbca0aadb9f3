package strength

import "testing"

// TestStrength: what counts as an answer, each with its counterexample.
func TestStrength(t *testing.T) {
	const least = 0.25
	word := func(text string, messages int) Word { return Word{Text: text, Messages: messages} }
	for _, tc := range []struct {
		name  string
		size  int
		words []Word
		has   []float64
		want  bool
	}{
		{"a rare word", 700, []Word{word("allotment", 2)}, []float64{1}, true},
		{"a word that a fifth of the messages have", 700, []Word{word("allotment", 140)}, []float64{1}, false},
		{"one message is all that there is", 1, []Word{word("cat", 1), word("called", 1)}, []float64{1, 0}, true},
		{"words that everybody says", 700, []Word{word("good", 3), word("morning", 2), word("walrus", 0)}, []float64{1, 1}, false},
		{"one word of six", 700, []Word{word("recipe", 8), word("sourdough", 0), word("pretzels", 0), word("lye", 0), word("oven", 0), word("salt", 0)}, []float64{1}, false},
		{"three of six", 700, []Word{word("recipe", 8), word("sourdough", 3), word("pretzels", 1), word("lye", 0), word("oven", 0), word("salt", 0)}, []float64{1, 1, 1}, true},
		{"somebody who speaks there", 700, []Word{{Text: "ann", Messages: 300, Speaker: true}, word("allotment", 0)}, []float64{1}, true},
		{"who is often spoken of and never speaks", 700, []Word{word("ann", 300), word("allotment", 0)}, []float64{1}, false},
		{"a date that nobody writes", 700, []Word{word("allotment", 2), word("14", 0), word("2023", 0), word("1998", 0), word("1999", 0)}, []float64{1}, true},
		{"half a word, from what stands beside", 700, []Word{word("allotment", 2), word("digging", 0), word("dandelions", 0)}, []float64{0.5}, false},
		{"a long text of which much is there", 700, []Word{word("aa", 1), word("bb", 1), word("cc", 1), word("dd", 0), word("ee", 0), word("ff", 0),
			word("gg", 0), word("hh", 0), word("ii", 0), word("jj", 0), word("kk", 0), word("ll", 0), word("mm", 0), word("nn", 0)}, []float64{1, 1, 1}, true},
		{"nothing", 700, nil, nil, false},
		{"an empty word", 700, []Word{word("", 0)}, []float64{1}, false},
	} {
		q := NewQuestion(tc.words, tc.size)
		got := q.Of(func(n int) float64 {
			if n < len(tc.has) {
				return tc.has[n]
			}
			return 0
		})
		if (got >= least) != tc.want || got < 0 || got > 1 {
			t.Errorf("%s: %.2f, %.2f is wanted: %v", tc.name, got, least, tc.want)
		}
	}
}

// TestTells in every language of the table, with and without accents.
func TestTells(t *testing.T) {
	for text, want := range map[string]bool{
		"continue": false, "and now commit it": false, "it still does not work": false, "es funktioniert immer noch nicht": false, "zeig mir ein Beispiel": false, "OK, thanks!": false, "ja, mach das": false, "sí, hazlo": false, "si, hazlo": false, "oui, fais ça": false,
		"perché?": false, "por quê?": false, "doorgaan": false, "": false, "?": false, "y": false,
		"and his sister?": true, "the Snowplough again": true, "Wo ist der Schlafsack?": true, "続けて": true,
	} {
		if got := Tells(text); got != want {
			t.Errorf("Tells(%q) = %v", text, got)
		}
	}
}

func TestLightVerbs(t *testing.T) {
	for _, tc := range []struct {
		word, text string
		want       bool
	}{
		{"done", "What has Ann done?", true},
		{"go", "Where did Ann go?", true},
		{"go", "Did Ann go to Google?", true},
		{"make", "Make the header blue", true},
		{"go", "Which version of Go is it?", false},
		{"get", "Which GET request failed?", false},
		{"gemacht", "was hat Ann gemacht", true},
		{"hízo", "qué hízo Ann", true},
		{"vão", "onde vão eles", true},
		{"swim", "Where did Ann swim?", false},
		{"want", "What does Ann want?", false},
	} {
		if got := Light(tc.word, tc.text); got != tc.want {
			t.Errorf("%s in %q: %v, want %v", tc.word, tc.text, got, tc.want)
		}
	}
}
