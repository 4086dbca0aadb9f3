package transcripts

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

var must = helptest.Must

// endless is a reader that repeats a text and counts the bytes read.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		at := (e.read + n) % len(e.text)
		n += copy(p[n:], e.text[at:])
	}
	e.read += n
	return n, nil
}

// TestAFileIsHeldInPartsOnly checks that an item above the size limit is refused soon after
// the limit is reached, and that memory use stays proportional to the limit.
func TestAFileIsHeldInPartsOnly(t *testing.T) {
	for name, tc := range map[string]struct{ begins, says string }{
		"a line":                                 {`{"role":"user","content":"`, "line 1 cannot be read: it is larger than 32 MiB"},
		"a conversation":                         {`[{"uuid":"u","chat_messages":[{"uuid":"m","sender":"human","text":"`, "conversation 1 of the export cannot be read: it is larger than 32 MiB"},
		"a later one":                            {`[{"uuid":"u","chat_messages":[{"uuid":"m","sender":"human","text":"hello"}]},{"uuid":"`, "conversation 2 of the export"},
		"nothing, where a conversation would be": {`[`, "32 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			fill := &endless{text: strings.Repeat("x", 4<<10)}
			if tc.begins == "[" {
				fill.text = strings.Repeat(" ", 4<<10)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readLines(io.MultiReader(strings.NewReader(tc.begins), fill), func(int, service.Line) error { return nil })
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v", err)
			}
			if fill.read > maxItem+4<<20 {
				t.Errorf("%d bytes were read", fill.read)
			}
			if held := after.TotalAlloc - before.TotalAlloc; held > 8*maxItem {
				t.Errorf("%d bytes were allocated", held)
			}
		})
	}
}

// TestManySmallConversations checks that a file may exceed the size limit of an item if
// each of its conversations is small, and that a truncated file is an error.
func TestManySmallConversations(t *testing.T) {
	one := `{"uuid":"u","chat_messages":[{"uuid":"m","sender":"human","text":"` + strings.Repeat("x", 1<<20) + `"}]}`
	file := "[" + strings.TrimSuffix(strings.Repeat(one+",", 2*maxItem>>20), ",") + "]"
	n := 0
	if _, err := readLines(bytes.NewReader([]byte(file)), func(int, service.Line) error { n++; return nil }); err != nil || n != 2*maxItem>>20 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := readLines(strings.NewReader(file[:len(file)-1]), func(int, service.Line) error { return nil }); err == nil || !strings.Contains(err.Error(), "ends in the middle") {
		t.Errorf("one that was cut off: %v", err)
	}
}
