package embedded

import "testing"

// TestKinds checks the kinds of values found in a text, and whether the text states only
// that a value changed.
func TestKinds(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  kinds
		alone bool
	}{
		{"No, we moved to Postgres 16 yesterday.", ofName | ofNumber | ofVersion | ofDate, true},
		{"It was moved to the 7th.", ofDate, true},
		{"jetzt 192.168.178.55", ofAddress, true},
		{"The key lives in kv/ci-runner now.", ofAddress, false},
		{"They raised it to 80 calls", ofNumber, false},
		{"It is at 10:30 now", ofTime, true},
		{"the linter is 1.24 now", ofNumber | ofVersion, false},
		{"Der Server steht im Keller", 0, false},
		{"無料プランは50問に増やしました", ofNumber, false},
		{"公開日は12月18日に変更", ofNumber | ofDate, false},
		{"It is at 10:30", ofTime, false},
		{"", 0, false},
	} {
		got, _ := kindsOf(tc.text)
		if alone := onlyChanges(tc.text); got != tc.want || alone != tc.alone {
			t.Errorf("kindsOf(%q) = %06b, alone %v, want %06b, %v", tc.text, got, alone, tc.want, tc.alone)
		}
	}
}
