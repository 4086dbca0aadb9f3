package gemini

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestLongAnswer: its text is cut between two characters.
func TestLongAnswer(t *testing.T) {
	r := Dialect{}.NewReader("")
	text := strings.Repeat("ö", dialect.MaxAnswer/4)
	for _, said := range []string{"a", text, text, text} {
		r.Event(nil, []byte(`{"candidates":[{"content":{"parts":[{"text":"`+said+`"}]},"finishReason":"STOP"}]}`))
	}
	a := r.Answer()
	if len(a.Text) != dialect.MaxAnswer-1 || strings.Trim(a.Text, "ö") != "a" || a.End != dialect.EndStop {
		t.Errorf("%d bytes, end %v", len(a.Text), a.End)
	}
}
