package inspector

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// beginning is the number of bytes of a text that a page shows at once. lineBeginning
	// is the same for a text in a list.
	beginning     = 1200
	lineBeginning = 400

	// roomForText is the number of bytes on a page for texts after their beginnings.
	roomForText = 48 << 10
)

// said is a text on a page.
type said struct {
	Begins string
	Rest   string // shown on request
	Chars  int    // of the whole text, if Begins is only a part
	More   string // page of the whole text, if this page has no room for Rest
}

// said cuts a text. more is a page with the whole text.
func (v *visit) said(text, more string) said { return v.cut(text, beginning, more) }

// cut cuts a text after at most most bytes.
func (v *visit) cut(text string, most int, more string) said {
	text = strings.TrimSpace(text)
	at := cutAt(text, most)
	v.used += weightOf(text[:at])
	if at == len(text) {
		return said{Begins: text}
	}
	s := said{Begins: text[:at], Chars: utf8.RuneCountInString(text)}
	if rest := text[at:]; more == "" || weightOf(rest) <= v.room {
		if len(rest) > v.room {
			rest = rest[:cutAt(rest, max(v.room, 0))] + "…"
		}
		v.room -= weightOf(rest)
		s.Rest = rest
		return s
	}
	s.More = more
	return s
}

// weightOf returns the number of bytes of a text on a page.
func weightOf(text string) int {
	return len(visible([]byte(html.EscapeString(text))))
}

// cutAt returns the place to cut a text after at most most bytes: after a space if the
// second half has one.
func cutAt(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	end := len(graphiti.Truncate(text, most))
	if space := strings.LastIndexAny(text[:end], " \n"); space > end/2 {
		return space + 1
	}
	return end
}

// visible replaces unprintable, text-reversing and invisible characters with a mark of
// their number. Joiners stay: scripts and emoji need them.
func visible(page []byte) []byte {
	if !bytes.ContainsFunc(page, hides) {
		return page
	}
	out := make([]byte, 0, len(page)+64)
	for len(page) > 0 {
		r, n := utf8.DecodeRune(page)
		switch {
		case r == utf8.RuneError && n == 1:
			out = utf8.AppendRune(out, utf8.RuneError)
		case hides(r):
			out = fmt.Appendf(out, "⟨U+%04X⟩", r)
		default:
			out = append(out, page[:n]...)
		}
		page = page[n:]
	}
	return out
}

// editable returns a text for a field of a form, without unprintable characters, so that a
// form sends no marks back.
func editable(text string) string {
	return strings.Map(func(r rune) rune {
		if hides(r) {
			return -1
		}
		return r
	}, text)
}

// hides reports whether a character reverses text, hides in it or does not print.
func hides(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d', '\u00ad':
		return false
	case '\u2028', '\u2029', utf8.RuneError:
		return true
	}
	return r < 0x20 || r > 0x7e && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r))
}

func onlyIf(ok bool, text string) string {
	if ok {
		return text
	}
	return ""
}

// oneLine returns the beginning of a name as one line.
func oneLine(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if at := cutAt(s, most); at < len(s) {
		return s[:at] + "…"
	}
	return s
}

// grouped formats a number with a comma between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func counted(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "y"):
		return grouped(n) + " " + strings.TrimSuffix(one, "y") + "ies"
	}
	return grouped(n) + " " + one + "s"
}

func took(ms float64) string {
	switch {
	case ms <= 0:
		return "0 ms"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 60_000:
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Second).String()
}

// utc formats a time for browsers without scripts: their time zone is unknown here.
func utc(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}

func isMoment(at string) bool {
	_, err := time.Parse(time.RFC3339, at)
	return err == nil
}

// dated formats a time for pages. It returns "" for an unknown time.
func dated(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
