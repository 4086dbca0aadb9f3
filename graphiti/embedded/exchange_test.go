package embedded

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

var must = helptest.Must

// TestExchangeAnswersAWholeProblem checks that the words of a problem find its answer, if
// the conversation continued after the answer.
func TestExchangeAnswersAWholeProblem(t *testing.T) {
	const (
		locked = "bin/rails db:prepare: SQLite3::BusyException: database is locked"
		cure   = "Give the queue a file of its own in database.yml."
		offer  = "Either an optimistic column or a lease that expires. The former is enough."
		build  = "poetry install blows up at pyproj, have a look?"
		frame  = "  File \"/srv/app/worker.py\", line 105, in execute\n    return self.cursor.execute(sql, params)\n"
		header = "It finds no headers. `apt install libproj-dev`, then install once more."
	)
	trace := "after the deploy, not at once: Traceback (most recent call last):\n" + strings.Repeat(frame, 3) + "at last " + locked
	m, err := sentence.Load()
	must(t, err)
	for _, tc := range []struct {
		name string
		said [][]string
		asks string
		want string // shown text; "" for none
	}{
		{"an error and its cure", [][]string{{locked, cure, "brilliant", "Good."}}, "what did we do against the busy exception?", locked + " (answer: " + cure + ")"},
		{"an error that is only named", [][]string{{locked, cure, "brilliant", "Good."}}, "the busy exception again", locked + " (answer: " + cure + ")"},
		{"a question and a command", [][]string{{build, header, "go on", "Done."}}, "pyproj blows up again, which one was missing?", build + " (answer: " + header + ")"},
		{"a choice", [][]string{{"we sing in two rows", "Noted."}, {"which seating for the choir?", offer, "the former it is", "Good."}}, "what did we pick for the seating of the choir?", "which seating for the choir? (answer: " + offer + "; reply: the former it is)"},
		{"another subject is no choice", [][]string{{"which seating for the choir?", offer, "the mast goes up on Thursday", "Noted."}}, "what did we pick for the seating of the choir?", "the mast goes up on Thursday"}, // it may correct the answer
		{"nothing followed", [][]string{{build, header}}, "pyproj does not build, which one was missing?", ""},
		{"a long error and its cure", [][]string{{trace, cure, "helped, half an hour of quiet", "Good."}}, "database is locked again, what did we do?", strings.Join(strings.Fields(trace), " ") + " (answer: " + cure + ")"},
		{"an acknowledgment is no cure", [][]string{{"the decoder dies on an empty buffer", "Noted.", "go on", "Done."}}, "why did the decoder die on its buffer?", "the decoder dies on an empty buffer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := openEmbedded(t)
			e.Understand(m, FitOf(m.Name()), slog.New(slog.DiscardHandler))
			chats(t, e, tc.said...)
			helptest.Until(t, "vectors", e.Compares)
			if got := strings.Join(strong(t, e, tc.asks), " | "); got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.asks, got, tc.want)
			}
		})
	}
}

func TestSpecificNamesSomethingToType(t *testing.T) {
	for text, want := range map[string]bool{
		"Run `make`.": true, "Set busy_timeout to 5000.": true, "Pass --force.": true, "Build with -tags timetzdata.": true, "Yes - done.": false, "It is in database.yml.": true, "apt install php8.3-intl": true, "Decode payload[1:].": true, "Set prepare: :unnamed in the repo config": true, "It is in .gitignore.": true, "Look into /etc.": true,
		"Noted.": false, "That took 3.5 seconds.": false, "Yes: done.": false, "It starts at 10:30.": false, "e.g": true, "We agreed, mostly.": false, "Well ... maybe": false, "Yes (done) :)": false, "“Yes”, they said": false,
	} {
		if got := specific(text); got != want {
			t.Errorf("specific(%q) = %v, want %v", text, got, want)
		}
	}
}
