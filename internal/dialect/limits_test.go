package dialect_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/responses"
)

func repeated(before, one, after string, size int) []byte {
	n := (size - len(before) - len(after)) / (len(one) + 1)
	return []byte(before + strings.Repeat(one+",", n) + one + after)
}

// TestBodyOfTinyMessages checks that a body of tiny messages is refused before their
// structs exceed the memory limit.
func TestBodyOfTinyMessages(t *testing.T) {
	user := `{"role":"user","content":"x"}`
	for _, tc := range []struct {
		name string
		d    dialect.Dialect
		body []byte
	}{
		{"responses", responses.Dialect{}, repeated(`{"input":[`, `{}`, `]}`, 16<<20)},
		{"responses, silent", responses.Dialect{}, repeated(`{"input":[`, `{"type":"reasoning"}`, `]}`, 16<<20)},
		{"responses, references", responses.Dialect{}, repeated(`{"input":[`, `{"type":"item_reference","id":"a"}`, `]}`, 16<<20)},
		{"responses, one answer", responses.Dialect{}, repeated(`{"input":[`, `{"role":"assistant","content":"x"}`, `]}`, 16<<20)},
		{"chat", chat.Dialect{}, repeated(`{"messages":[`, user, `]}`, 16<<20)},
		{"messages", messages.Dialect{}, repeated(`{"messages":[`, user, `]}`, 16<<20)},
		{"parts of one message", chat.Dialect{}, repeated(`{"messages":[{"role":"user","content":[`, `{"type":"text","text":"x"}`, `]}]}`, 16<<20)},
		{"parts of a prompt", messages.Dialect{}, repeated(`{"messages":[`+user+`],"system":[`, `{"type":"text","text":"x"}`, `]}`, 16<<20)},
	} {
		var c dialect.Conversation
		taken := 0
		c.Limit(dialect.Limits{Room: room(func(n int) bool { taken += n; return true })})
		ok := tc.d.Parse(tc.body, &c)
		if stop := c.Stopped(); ok || stop != dialect.StoppedTooLarge {
			t.Errorf("%s: understood %v, stopped %v; want StoppedTooLarge", tc.name, ok, stop)
		}
		if c.Size() > 8<<20 || taken > 16<<20 {
			t.Errorf("%s: %d bytes are held, %d were asked for; want at most 8 MiB and 16 MiB", tc.name, c.Size(), taken)
		}
	}
}

// TestMessagesAreBounded checks that Parse accepts the maximum number of messages and
// rejects one more.
func TestMessagesAreBounded(t *testing.T) {
	for _, tc := range []struct {
		messages int
		ok       bool
	}{{10, true}, {11, false}} {
		body := `{"messages":[` + strings.Repeat(`{"role":"user","content":"x"},`, tc.messages-1) + `{"role":"user","content":"x"}]}`
		var c dialect.Conversation
		c.Limit(dialect.Limits{Messages: 10})
		if ok := (chat.Dialect{}).Parse([]byte(body), &c); ok != tc.ok {
			t.Errorf("%d messages: %v", tc.messages, ok)
		}
	}
}

type room func(bytes int) bool

func (r room) Grow(bytes int) bool { return r(bytes) }

// TestParsingAsksBeforeItAllocates checks that Parse requests memory before it allocates
// any, and stops without it.
func TestParsingAsksBeforeItAllocates(t *testing.T) {
	body := repeated(`{"messages":[`, `{"role":"user","content":"<system-reminder>a\n</system-reminder>b"}`, `]}`, 64<<10)
	for allowed := range 40 {
		var c dialect.Conversation
		taken := 0
		c.Limit(dialect.Limits{Room: room(func(n int) bool {
			if taken+n > allowed<<12 {
				return false
			}
			taken += n
			return true
		})})
		ok := (chat.Dialect{}).Parse(body, &c)
		if stop := c.Stopped(); ok && stop != dialect.NotStopped || !ok && stop != dialect.StoppedBusy {
			t.Errorf("%d KiB: %v, %v", 4*allowed, ok, stop)
		}
		if c.Size() > 2*taken {
			t.Errorf("%d bytes are held, %d were asked for", c.Size(), taken)
		}
	}
}

// summaries returns opening tags of summary elements with many names, and no closing tags.
func summaries(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `\n<summary%d>\n`, i)
	}
	return b.String()
}

// TestParsingLooksAtTheClock checks that Parse stops soon after its deadline for a body of
// any shape. The test counts reads of a fake clock instead of measuring time.
func TestParsingLooksAtTheClock(t *testing.T) {
	const size = 2 << 20
	long := func(text string) []byte {
		return []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat(text, size/len(text)) + `"}]}`)
	}
	shapes := map[string][]byte{
		"one string":       long("hello there "),
		"escapes":          long(`\n`),
		"unicode":          long(`\u003c`),
		"brackets":         long(`<`),
		"summaries":        long(`\n<summary>\n`),
		"other summaries":  []byte(`{"messages":[{"role":"user","content":"` + summaries(size) + `"}]}`),
		"tags":             long(`<system-reminder>`),
		"tags and ends":    long(`<skill>a</skill><cwd>b</cwd><user_action>`),
		"tools":            repeated(`{"messages":[{"role":"user","content":"x"}],"tools":[`, `{"a":[1,2]}`, `]}`, size),
		"nesting":          repeated(`{"messages":[{"role":"user","content":"x"}],"x":[`, strings.Repeat("[", 190)+strings.Repeat("]", 190), `]}`, size),
		"members":          repeated(`{"messages":[{"role":"user","content":"x"}],"x":{`, `"a":1`, `}}`, size),
		"white space":      []byte(`{"messages":[{"role":"user","content":"x"}]` + strings.Repeat(" ", size) + "}"),
		"other parts":      repeated(`{"messages":[{"role":"user","content":[`, `{"type":"image_url"}`, `]}]}`, size),
		"messages of tags": repeated(`{"messages":[`, `{"role":"user","content":"`+strings.Repeat("<skill>", 150)+`"}`, `]}`, size),
		"details, and a long prompt": []byte(`{"messages":[{"role":"system","content":"` + strings.Repeat("prompt ", size/2/7) + `"}` +
			strings.Repeat(`,{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"<environment_details>\nWorking directory: /a\n</environment_details>"}]}`, size>>10) + `]}`),
		"a prompt of lines":  []byte(`{"messages":[{"role":"user","content":"x"},{"role":"system","content":"` + strings.Repeat(strings.Repeat(" ", 4000)+`x: \nirectory: \n`, size/4018) + `"}]}`),
		"a prompt of places": []byte(`{"messages":[{"role":"user","content":"x"},{"role":"system","content":"` + strings.Repeat(strings.Repeat(" ", 4000)+`irectory: \n`, size/4012) + `"}]}`),
	}
	for name, body := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// read parses a body whose deadline passes at a given read of the clock. It counts
			// the reads.
			read := func(over int) (looks int, c dialect.Conversation) {
				until := time.Unix(1, 0)
				c.Limit(dialect.Limits{Until: until, Now: func() time.Time {
					if looks++; looks < over {
						return until.Add(-time.Second)
					}
					return until
				}})
				if (chat.Dialect{}).Parse(body, &c) {
					c.Place("Codex")
					c.Place("")
				}
				return looks, c
			}
			all, c := read(math.MaxInt)
			least := size >> 20 // one read per MiB
			if name == "one string" || name == "white space" {
				least = 1 // one call of package bytes scans it, at gigabytes per second
			}
			if c.Stopped() != dialect.NotStopped || all < least {
				t.Errorf("%v, the clock was asked %d times, want %d at least", c.Stopped(), all, least)
			}
			for _, over := range []int{1, (all + 3) / 4} {
				if looks, c := read(over); c.Stopped() != dialect.StoppedLate || looks > over+3 {
					t.Errorf("the time was over at look %d of %d: %v, and the clock was asked %d times", over, all, c.Stopped(), looks)
				}
			}
			t.Logf("asks %d times", all)
		})
	}
}

// TestSizes checks that the accounting of memory covers the real sizes of a message and a
// text.
func TestSizes(t *testing.T) {
	if m, s, counted := dialect.Sizes(); m > counted[0] || s > counted[1] {
		t.Errorf("a message takes %d bytes and a text %d, want at most the counted %d", m, s, counted)
	}
}
