package dialect

import (
	"bytes"
	"regexp"
)

// Some clients state the time in a message, new in each request: in brackets before the words,
// or in a paragraph of its own. Their history may lack it.

// maxClock is the length of a longer paragraph or stamp that states no time, in bytes.
const maxClock = 120

var (
	// stamp matches brackets before a person's words.
	stamp = regexp.MustCompile(`^\[[^\[\]\n]{4,90}\]\s+`)

	isoDate = regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	year    = regexp.MustCompile(`\b\d{4}\b`)
	hour    = regexp.MustCompile(`\d\d?:\d\d`)

	// clock matches a paragraph of nothing but a date, a time, and a label for them.
	clock = regexp.MustCompile(`(?i)^[\s\[(*_#]*(?:(?:\d{4}-\d\d-\d\d(?:T[\d:.]+)?Z?|\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[ap]m\b)?|[+-]\d\d:?\d\d|\d\d?[./]\d\d?[./]\d{2,4}|\d\d?(?:st|nd|rd|th)?\b|\d{4}\b|[ap]\.?m\.?` +
		`|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b|(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b` +
		`|(?:UTC|GMT|[A-Z]{1,3}T)\b|[A-Z][a-z]+/[A-Z][A-Za-z_]+|(?:the|it|is|it's|current|currently|local|system|server|client|user|user's|today|today's|now|date|time|datetime|timestamp|clock|time ?zone|and|at|on|of|as|in)\b)[\s:;,.=()\[\]*_|&-]*)+$`)

	// timed matches the label of the present time, and dated of the present day.
	timed = regexp.MustCompile(`(?i)\b(?:current|local|system|server|client|user's|today's|now)\b.*\b(?:date|time|datetime|timestamp|clock)\b|\b(?:date|time|timestamp)\b.*\bnow\b`)
	dated = regexp.MustCompile(`(?i)\b(?:it|today|now) is\b`)

	breaks = [][]byte{[]byte("\n\n"), []byte("\n\r\n")} // between paragraphs
)

// statesTime reports whether a paragraph only states the time. A person may have written a time
// without a label for the present: it counts only where bare is set, or in brackets.
func statesTime(p []byte, bare bool) bool {
	if p = trim(p); len(p) == 0 || len(p) > maxClock || !bytes.ContainsAny(p, "0123456789") || !clock.Match(p) {
		return false
	}
	day, at := year.Match(p), hour.Match(p)
	return timed.Match(p) && (day || at) || dated.Match(p) && day || day && at && (bare || p[0] == '[')
}

// withoutClock removes a client's statements of the time from the ends of a text.
func withoutClock(text []byte) []byte {
	if len(text) > 0 && text[0] == '[' {
		if loc := stamp.Find(text); isoDate.Match(loc) || year.Match(loc) && hour.Match(loc) {
			text = text[len(loc):]
		}
	}
	if statesTime(text, false) && timed.Match(text) && year.Match(text) && hour.Match(text) {
		return nil
	}
	for _, b := range breaks {
		if i := bytes.Index(text[:min(len(text), maxClock+len(b))], b); i >= 0 && statesTime(text[:i], true) {
			text = trim(text[i:])
		}
		if from := max(0, len(text)-maxClock-len(b)); bytes.Contains(text[from:], b) {
			if i := bytes.LastIndex(text, b); statesTime(text[i:], false) {
				text = trim(text[:i])
			}
		}
	}
	return text
}
