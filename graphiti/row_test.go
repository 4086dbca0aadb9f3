package graphiti

import "testing"

func TestParseID(t *testing.T) {
	id := IDOf("a name")
	if got, ok := ParseID(id.String()); !ok || got != id {
		t.Errorf("ParseID(%q) = %v, %v, want %v", id, got, ok, id)
	}
	for _, text := range []string{"", "x", "'", "ABCDEF012345", id.String() + "00", id.String()[1:]} {
		if got, ok := ParseID(text); ok {
			t.Errorf("ParseID(%q) = %v, want no ID", text, got)
		}
	}
}
