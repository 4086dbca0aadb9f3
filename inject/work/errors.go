package work

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// The forms of lines that report an error, from the most telling one.
var (
	pytestFailed = regexp.MustCompile(`^FAILED (\S+?)(?: - (.*))?$`)
	pytestError  = regexp.MustCompile(`^E {2,}(\S.*)$`)
	goFailed     = regexp.MustCompile(`^\s*(--- FAIL: \S+)`)
	jestFailed   = regexp.MustCompile(`^\s*● (.+)$`)
	rustPanic    = regexp.MustCompile(`^thread '.*' (?:\(\d+\) )?panicked at`)
	causedBy     = regexp.MustCompile(`^\s*Caused by: (.+)$`)
	pythonRaised = regexp.MustCompile(`^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?:: .*)?$`)
	compiled     = regexp.MustCompile(`^(?:fatal )?error(?:\[\w+\]| \w+)?: \S`)
	positioned   = regexp.MustCompile(`^\s*(?:[\w./\\@+-]*/)?([\w.@+-]+\.\w+)[:(]\d+(?:[:,]\d+)?\)?:? *(?:- )?(\S.*)$`)
	panicked     = regexp.MustCompile(`^panic: \S`)
	remarked     = regexp.MustCompile(`(?i)^(?:warning|note|info|debug|hint)\b`)
	saysError    = regexp.MustCompile(`(?i)\b(?:[a-z]*error|fatal|[a-z]*exception|panic|cannot|failed|failure|not found|no such|denied|refused)\b`)
	noError      = regexp.MustCompile(`(?i)\berrors?:? *(?:\(none\)|(?:none|null|0)\b)|\b(?:0|no) (?:errors?|failures?|failed)\b`)
	placed       = regexp.MustCompile(`([\w.@+-]+\.\w+)[:(]\d+`)
	lookedFor    = regexp.MustCompile(`'[^']{1,120}'|"[^"]{1,120}"|` + "`[^`]{1,120}`")
)

// Fault is an error in an output.
type Fault struct {
	Key  string // equal for the same error in another directory, line or run
	Line string // the part that names the error
}

var (
	clause = regexp.MustCompile("[:!?,(`|][ \t]*|[ \t]+[-–—][ \t]+|[.;。；][ \t]+")
	acts   = regexp.MustCompile(`://|\s--?[a-z]|\$[({]|[|&<>]\s*\w*sh\b`)
)

// named returns the part of an error line that names the error. A repository writes the output of
// its tests, and could put the cure of its choice there: a further sentence, a request, an
// option of a command and an address end the part.
func named(line string) string {
	for from := 0; from < len(line); {
		end, next := len(line), len(line)
		if at := clause.FindStringIndex(line[from:]); at != nil {
			end, next = from+at[0], from+at[1]
		}
		if part := line[from:end]; words.Requests(part) || acts.MatchString(part) || bare.MatchString(part) {
			return strings.TrimRight(line[:from], " \t:!?,(`|-–—")
		}
		if end < len(line) && strings.ContainsAny(line[end:next], ".;。；") {
			return line[:end]
		}
		from = next
	}
	return line
}

// FaultIn returns the first error in a text that has the form of one. If the command failed,
// the last line counts too. The zero Fault means that there is none.
func FaultIn(text string, failed bool) Fault {
	lines := strings.Split(text, "\n")
	if line, at := formed(lines); line != "" {
		return Fault{keyOf(line, lines[at:]), oneLine(named(line), lineLength)}
	}
	for i, line := range lines {
		if l := strings.TrimSpace(line); saysError.MatchString(l) && !noError.MatchString(l) && !remarked.MatchString(l) {
			return Fault{keyOf(l, lines[i:]), oneLine(named(l), lineLength)}
		}
	}
	for i := len(lines) - 1; failed && i >= 0; i-- {
		if l := strings.TrimSpace(lines[i]); strings.ContainsFunc(l, unicode.IsLetter) {
			return Fault{keyOf(l, nil), oneLine(named(l), lineLength)}
		}
	}
	return Fault{}
}

const maxKeys = 40

// Keys returns the keys of the lines of a text, in case one is an error.
func Keys(text string) (keys []string) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && i < maxKeys {
			keys = append(keys, keyOf(line, nil))
		}
	}
	if f := FaultIn(text, false); f.Key != "" {
		keys = append(keys, f.Key)
	}
	return keys
}

const minNamed = 16 // bytes of a key that tells enough within another line

// Ends reports whether the cure is for the error with a key. A person's line may contain the
// error among other words, without the test's name. Either may be cut.
func (c *Cure) Ends(key string) bool {
	_, wrong, found := strings.Cut(c.Key, " | ")
	if !found {
		wrong = c.Key
	}
	has := func(text, part string) bool {
		part = strings.TrimSuffix(part, "…")
		return len(part) >= minNamed && strings.Contains(text, part)
	}
	return key == c.Key || has(key, wrong) || strings.HasSuffix(key, "…") && has(c.Key, key)
}

// uncut returns a line without the dots of a program or a terminal that has cut it.
func uncut(line string) (rest string, cut bool) {
	rest = strings.TrimSuffix(strings.TrimSuffix(line, "…"), "...")
	return strings.TrimRight(rest, " "), rest != line
}

// hasFault reports whether a text has an error in a form of its own.
func hasFault(text string) bool {
	line, _ := formed(strings.Split(text, "\n"))
	return line != ""
}

// formed returns the error of a text in the most telling form, and the index of its line.
func formed(lines []string) (found string, at int) {
	next := func(i int) string { // the next line with a text
		for _, l := range lines[i+1:] {
			if l = strings.TrimSpace(l); l != "" {
				return l
			}
		}
		return ""
	}
	best := 100
	take := func(rank, i int, line string, last bool) {
		if rank < best || last && rank == best {
			best, found, at = rank, line, i
		}
	}
	var why []string
	traced := false
	headed := false // a Go compiler writes only positions before its errors, after the package's name
	for i, line := range lines {
		line = strings.TrimRight(line, " \r")
		if m := pytestError.FindStringSubmatch(line); m != nil {
			why = append(why, m[1])
		}
		headed = headed || strings.HasPrefix(line, "# ")
		traced = traced || strings.HasPrefix(line, "Traceback (most recent call last)")
		switch {
		case pytestFailed.MatchString(line):
			m := pytestFailed.FindStringSubmatch(line)
			if reason, cut := uncut(m[2]); cut || reason == "" {
				if k := slices.IndexFunc(why, func(w string) bool { return strings.HasPrefix(w, reason) }); k >= 0 {
					m[2] = why[k]
				}
			}
			take(1, i, path.Base(m[1])+" | "+m[2], false)
		case goFailed.MatchString(line):
			take(3, i, goFailed.FindStringSubmatch(line)[1], false)
		case jestFailed.MatchString(line):
			take(1, i, "● "+jestFailed.FindStringSubmatch(line)[1]+" | "+next(i), false)
		case rustPanic.MatchString(line), panicked.MatchString(line) && strings.HasSuffix(line, ":"):
			take(2, i, next(i), false)
		case panicked.MatchString(line):
			take(2, i, line, false)
		case causedBy.MatchString(line):
			take(3, i, strings.TrimSpace(line), true)
		case traced && pythonRaised.MatchString(line):
			take(4, i, line, true)
		case compiled.MatchString(line):
			take(5, i, line, false)
		case positioned.MatchString(line):
			if m := positioned.FindStringSubmatch(line); !remarked.MatchString(m[2]) && (saysError.MatchString(m[2]) || headed) {
				take(5, i, strings.TrimSpace(line), false)
			}
		}
	}
	return found, at
}

var (
	framePrefix = regexp.MustCompile(`^(?:E {2,}|[\w./-]*sh: (?:line )?(?:\d+: )?)`) // of pytest, or a shell
	errorPrefix = regexp.MustCompile(`^(?:[Ee]rror: )+`)
	stamps      = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,Z+:-]*`)
	numbers     = regexp.MustCompile(`\b(?:0x[0-9a-fA-F]+|\d+(?:[.:,]\d+)*(?:ms|s|kB|MB)?)\b`)
	rooted      = regexp.MustCompile(`(^|[\s"'` + "`" + `(=,:])(?:[A-Za-z]:)?(?:[/\\][\w.@+-]+)+`)
)

// keyOf returns the key of an error line. Without a quoted or a test's name the line only
// names a kind of error, so the key names the file too; rest may place the error in it.
func keyOf(line string, rest []string) string {
	key := framePrefix.ReplaceAllString(strings.TrimSpace(line), "")
	file := ""
	if m := positioned.FindStringSubmatch(key); m != nil {
		file, key = m[1], m[2]
	}
	key = errorPrefix.ReplaceAllString(key, "")
	if rest, cut := uncut(key); cut {
		key = rest + "…"
	}
	key = rooted.ReplaceAllStringFunc(key, func(p string) string {
		i := strings.LastIndexAny(p, `/\`)
		if strings.ContainsAny(p[:1], "/\\") || len(p) > 1 && p[1] == ':' && unicode.IsLetter(rune(p[0])) {
			return p[i+1:]
		}
		return p[:1] + p[i+1:]
	})
	isNamed := lookedFor.MatchString(key) || strings.Contains(key, " | ") || strings.HasPrefix(key, "--- FAIL: ")
	var b strings.Builder
	for key != "" {
		plain, quoted := key, ""
		if at := lookedFor.FindStringIndex(key); at != nil {
			plain, quoted = key[:at[0]], key[at[0]:at[1]]
		}
		key = key[len(plain)+len(quoted):]
		b.WriteString(numbers.ReplaceAllString(stamps.ReplaceAllString(plain, "#"), "#"))
		b.WriteString(quoted)
	}
	key = oneLine(b.String(), lineLength)
	for i := 0; !isNamed && file == "" && i < min(len(rest), 4); i++ {
		if m := placed.FindStringSubmatch(rest[i]); m != nil {
			file = m[1]
		}
	}
	if !isNamed && file != "" {
		return file + ": " + key
	}
	return key
}
