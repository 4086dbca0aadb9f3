package graphiti

import "testing"

func TestShortenMiddle(t *testing.T) {
	for _, tc := range []struct {
		s    string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"head then tail", 9, "head-tail"},
		{"éééééüüüüü", 5, "éé-üü"},
		{"abcdefghij", 4, "ab-j"},
		{"abcdefghij", 1, "-"},
	} {
		if got := ShortenMiddle(tc.s, "-", tc.n); got != tc.want {
			t.Errorf("ShortenMiddle(%q, %d) = %q, want %q", tc.s, tc.n, got, tc.want)
		}
	}
}
