package words

import (
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

func TestOutside(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"no fence", "a\nb", "a\nb"},
		{"a fence", "a\n```\nb\n```\nc", "a\nc"},
		{"with an info string", "```go title\nb\n```\nc", "c"},
		{"backticks in the info string are none", "```a`b\nc", "```a`b\nc"},
		{"another sign does not end it", "```\n~~~\nb\n~~~\n```\nc", "c"},
		{"a shorter one does not end it", "````\n```\nb\n````\nc", "c"},
		{"a longer one does", "```\nb\n`````\nc", "c"},
		{"an info string does not end it", "```\nb\n``` c\nd\n```\ne", "e"},
		{"it goes on to the end", "a\n~~~\nb", "a\n"},
		{"indented by three", "   ```\nb\n  ```  \nc", "c"},
		{"indented by four is none", "    ```\nb", "    ```\nb"},
		{"two signs are none", "``\nb", "``\nb"},
		{"carriage returns", "```\r\nb\r\n```\r\nc", "c"},
	} {
		if got := strings.Join(slices.Collect(OutsideFences(tc.text)), ""); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
