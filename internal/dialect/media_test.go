package dialect_test

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func TestWithoutMedia(t *testing.T) {
	long := strings.Repeat("iVBORw0KGgo/+", 1000)
	for _, tc := range []struct{ name, text, want string }{
		{"no media", "What is data:text/plain?", "What is data:text/plain?"},
		{"a picture in Markdown", "Look: ![x](data:image/png;base64," + long + "==) What is it?", "Look: ![x]() What is it?"},
		{"a file with parameters", "data:text/csv;charset=utf-8;base64,YQ== is mine", " is mine"},
		{"the words after a picture", "data:image/png;base64," + long + "\nWhose is it?", "\nWhose is it?"},
		{"tags on lines of their own", "<image name=[Image #1] path=\"/home/p/a.png\">\n</image>\nWhat colour?", "What colour?"},
		{"a tag in a sentence", "How do I centre an <img src=\"a.png\"> here?", "How do I centre an <img src=\"a.png\"> here?"},
		{"another element", "<images>\nx", "<images>\nx"},
	} {
		if got := string(dialect.WithoutMedia([]byte(tc.text))); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
