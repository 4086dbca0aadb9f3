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
)

const (
	// beginning is how many bytes of a text a page shows at once, and lineBeginning of one
	// among many.
	beginning     = 1200
	lineBeginning = 400

	// roomForText is how many bytes of what follows the beginnings a page may hold.
	roomForText = 48 << 10
)

// said is a text as a page shows it.
type said struct {
	Begins string
	Rest   string // what is shown when one asks for it
	Chars  int    // of all of it, where something is left out at first
	More   string // where all of it is, where the page has no room for the rest
}

// said cuts a text. more is a page that has all of it.
func (v *visit) said(text, more string) said { return v.cut(text, beginning, more) }

// cut cuts a text behind its first bytes.
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

// weightOf is how many bytes of a page a text is.
func weightOf(text string) int {
	return len(visible([]byte(html.EscapeString(text))))
}

// cutAt returns where a text may be cut that shows at most so many bytes: behind a word,
// if there is one.
func cutAt(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexAny(text[:end], " \n"); space > end/2 {
		return space + 1
	}
	return end
}

// visible replaces what turns text around, hides in it or does not print with a mark
// that says what it is. Joiners stay: scripts and emoji need them.
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

// editable is a text for a field in which it may be changed: what does not print is left
// out, so that no mark is sent back.
func editable(text string) string {
	return strings.Map(func(r rune) rune {
		if hides(r) {
			return -1
		}
		return r
	}, text)
}

// hides reports whether a character turns text around, hides in it or does not print.
func hides(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d', '\u00ad':
		return false
	case '\u2028', '\u2029', utf8.RuneError:
		return true
	}
	return r < 0x20 || r > 0x7e && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r))
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

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted writes a number of things.
func counted(n int, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "y"):
		return grouped(n) + " " + strings.TrimSuffix(one, "y") + "ies"
	}
	return grouped(n) + " " + one + "s"
}

// took writes a duration.
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

// utc writes a time for who has no script: their zone is not known here.
func utc(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}

// isMoment reports whether a time can be read.
func isMoment(at string) bool {
	_, err := time.Parse(time.RFC3339, at)
	return err == nil
}

// dated is a time as pages take it; empty where it is not known.
func dated(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
