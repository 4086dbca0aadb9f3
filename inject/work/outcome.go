package work

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Exit is the result of a command. The zero value is unknown: many clients do not report
// that a command failed, so it never counts as passed.
type Exit string

// The known outcomes.
const (
	Passed Exit = "passed"
	Failed Exit = "failed"
)

// output is the result of one command.
type output struct {
	outcome Exit
	code    int    // exit code; 0 if unknown
	states  bool   // silence means that a command passed: a code other than 0 is always stated
	always  bool   // every result of a command that ran shows it, by a code or the client's frame
	ran     bool   // this one does
	text    string // without the lines of the client's frame
	summary string // line of a test run
}

const (
	frameHead = 6 // lines of an output's beginning with a statement of the client
	frameTail = 5
	frameLine = 90 // length of such a line
)

var (
	exitLine   = regexp.MustCompile(`(?i)exit(?:ed)?[ _](?:with )?(?:code|status)\)?:? ?(-?\d{1,10})\b`)
	exitPrefix = regexp.MustCompile(`(?i)^error \(exit code (\d{1,10})\): ?`)
	framed     = regexp.MustCompile(`^(?:Command|Output): `) // Qwen Code, Gemini CLI
	timedOut   = regexp.MustCompile(`(?i)\btimed out\b`)
	goesOn     = regexp.MustCompile(`(?i)\bstill running\b|\brunning (?:with session|in (?:the )?background)`)
	colors     = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
)

// outcomeOf reads the result of the i-th of n commands of a call. states is true if the
// session's client has stated a code other than 0: then it states all of them.
func outcomeOf(r *dialect.Result, i, n int, states bool, redact func(string) string) (o output) {
	o.text = strings.ToValidUTF8(r.Text, "")
	var known bool
	if doc := gjson.Parse(o.text); doc.IsObject() || doc.IsArray() {
		if doc.IsArray() && len(doc.Array()) == n {
			doc = doc.Array()[i]
		}
		known = o.readJSON(doc)
	}
	o.text = redact(colors.ReplaceAllString(o.text, "")) // before lines are cut
	isFramed := framed.MatchString(o.text)
	known = o.readFrame() || known
	summary, fails := summaryOf(o.text)
	o.summary, o.ran = summary, isFramed || known || summary != ""
	if o.states && !r.Failed { // the client does not mark errors, so the text of each result tells
		o.always, o.states = o.always || isFramed, isFramed
	}
	switch {
	case o.outcome == Failed, r.Failed, o.code != 0:
		o.outcome = Failed
	case summary != "" && fails: // also behind a pipe, which hides the code
		o.outcome = Failed
	case known:
	case summary != "":
		o.outcome = Passed
	case states:
		o.outcome = Passed
	}
	return o
}

// readJSON reads a result in JSON, and reports whether that states an outcome. Clipping may
// have broken it.
func (o *output) readJSON(doc gjson.Result) (known bool) {
	var texts []string
	var walk func(v gjson.Result, depth int)
	walk = func(v gjson.Result, depth int) {
		v.ForEach(func(key, v gjson.Result) bool {
			switch name := strings.ToLower(strings.ReplaceAll(key.Str, "_", "")); {
			case (name == "exitcode" || name == "returncode") && v.Type == gjson.Number:
				known, o.code = true, int(v.Int())
				o.states = o.states || o.code != 0
				if o.code == 0 {
					o.outcome, o.always = Passed, true
				}
			case name == "success" && v.IsBool():
				if known, o.always = true, true; !v.Bool() {
					o.outcome = Failed
				} else if o.outcome == "" {
					o.outcome = Passed
				}
			case name == "timedout" && v.Bool():
				known, o.outcome = true, Failed
			case v.Type == gjson.String && name != "command" && name != "query":
				texts = append(texts, v.Str)
			case depth > 0 && (v.IsObject() || v.IsArray()):
				walk(v, depth-1)
			}
			return true
		})
	}
	walk(doc, 3)
	if texts != nil {
		o.text = strings.ToValidUTF8(strings.Join(texts, "\n"), "")
	}
	return known
}

// readFrame removes the client's lines from both ends of an output, and reports whether they
// state an outcome.
func (o *output) readFrame() (known bool) {
	lines := strings.Split(strings.TrimSpace(o.text), "\n")
	var kept []string
	for i, line := range lines {
		at := line
		isFrame := i < frameHead || i >= len(lines)-frameTail
		if m := exitPrefix.FindStringSubmatch(at); m != nil && i == 0 {
			// This client states a code only with an error output, so its silence means nothing.
			known, o.code = true, number(m[1])
			kept = append(kept, at[len(m[0]):])
			continue
		}
		if !isFrame || len(at) > frameLine {
			kept = append(kept, line)
			continue
		}
		m := exitLine.FindStringSubmatch(at)
		switch {
		case m != nil:
			known, o.code = true, number(m[1])
			if o.code == 0 && o.outcome == "" {
				o.outcome = Passed
			}
			o.states, o.always = o.states || o.code != 0, o.always || o.code == 0
		case goesOn.MatchString(at):
			known, o.outcome = true, ""
		case timedOut.MatchString(at) && !known:
			known, o.outcome = true, Failed
			kept = append(kept, line)
		default:
			kept = append(kept, line)
		}
	}
	o.text = strings.Join(kept, "\n")
	return known
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

var (
	// counts of a test run: "1 failed, 2 passed", "Failures: 1".
	counted = regexp.MustCompile(`(?i)\b(\d+) (?:tests? )?(passed|passing|failed|failing|failures?|errors?)\b|\b(failures|errors|# ?fail|# ?pass): ?(\d+)\b`)
	goTest  = regexp.MustCompile(`^(ok|FAIL)\s+\S+\s+(?:\[|\(|\d)`)
	unittst = regexp.MustCompile(`^(OK|FAILED) ?(?:\(.*\))?$`)
	ranSome = regexp.MustCompile(`^Ran \d+ tests?\b`)
)

// summaryOf returns the line that sums up a test run: the last one that reports a failure, or
// else the last one.
func summaryOf(text string) (summary string, fails bool) {
	ran := false
	for line := range strings.Lines(text) {
		line = strings.Trim(strings.TrimSpace(line), "= ")
		if line == "" || len(line) > 160 {
			continue
		}
		ran = ran || ranSome.MatchString(line)
		isSummary, fail := false, false
		for _, m := range counted.FindAllStringSubmatch(line, -1) {
			word, count := strings.ToLower(m[2]+m[3]), m[1]+m[4]
			isFail := strings.Contains(word, "fail") || strings.HasPrefix(word, "error")
			isSummary = isSummary || !strings.HasPrefix(word, "error")
			fail = fail || isFail && number(count) > 0
		}
		if m := goTest.FindStringSubmatch(line); m != nil {
			isSummary, fail = true, m[1] == "FAIL"
		}
		if m := unittst.FindStringSubmatch(line); m != nil && ran {
			isSummary, fail = true, m[1] == "FAILED"
		}
		if isSummary && (fail || !fails) {
			summary, fails = line, fail
		}
	}
	return summary, fails
}
