package proxy

import "testing"

// TestNormalized: neither the escapes of JSON nor marks count.
func TestNormalized(t *testing.T) {
	if got, want := string(normalized([]byte(`He said: \"Gate\n4711\"`), 12)), "hesaidgate47"; got != want {
		t.Errorf("normalized = %q, want %q", got, want)
	}
}
