package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// steps records the steps at the end of a turn, in order, and panics in the step named by
// panics.
type steps struct {
	done    []string
	panics  string
	fails   bool // the store of turns returns an error
	kept    []ledger.Turn
	pending *PendingTurns
}

func (s *steps) step(name string) {
	s.done = append(s.done, name)
	if name == s.panics {
		panic("a secret that somebody said")
	}
}

// stepTurns is a Turns whose methods are steps.
type stepTurns struct {
	noService
	steps *steps
}

func (s stepTurns) Add(ctx context.Context, t ledger.Turn) error    { return s.steps.keep(ctx, t) }
func (s stepTurns) CutOff(ctx context.Context, t ledger.Turn) error { return s.steps.cutOff(ctx, t) }

func (s *steps) keep(_ context.Context, t ledger.Turn) error {
	s.step("keep")
	if s.fails {
		return errors.New("the disk is full")
	}
	s.kept = append(s.kept, t)
	return nil
}

func (s *steps) cutOff(_ context.Context, t ledger.Turn) error {
	s.step("cut off: " + t.Assistant)
	return nil
}

// The methods of a Planner.
func (s *steps) Plan(context.Context, *dialect.Conversation, []dialect.Fingerprint, graphiti.Who, bool, inject.Mode) inject.Plan {
	panic("BUG: nothing is planned")
}
func (*steps) Withdraw(inject.Unanswered)                   {}
func (s *steps) Writes(graphiti.Who) []graphiti.Target      { return nil }
func (s *steps) Read(*inject.Round) (d inject.Done)         { return d }
func (s *steps) Worked(graphiti.Who, int64, *inject.Done)   { s.step("work") }
func (s *steps) Remember(graphiti.Who, int64, inject.Ended) { s.step("remember") }

// The methods of a Sessions.
func (s *steps) Pending(context.Context, ...[16]byte) (string, bool) { return "", false }
func (s *steps) SetPending(context.Context, [16]byte, string)        {}
func (s *steps) EndPending([16]byte)                                 {}
func (s *steps) PutAsync([16]byte, string)                           {}
func (s *steps) Find(context.Context, [][16]byte) (string, bool, error) {
	return "", false, nil
}

func (s *steps) Put(context.Context, string, ...[16]byte) error {
	s.step("session")
	return nil
}

// stepFigures records lost answers.
type stepFigures struct {
	noService
	*steps
}

func (s stepFigures) Lost(_ graphiti.Who, reason string) {
	s.done = append(s.done, "lost: "+reason)
}

// ends returns a turn that is about to end, with the services of s.
func ends(t *testing.T, s *steps, log *bytes.Buffer) *pendingTurn {
	t.Helper()
	s.pending = NewPendingTurns(time.Hour, func(_ context.Context, tn ledger.Turn) error {
		s.done = append(s.done, "abandoned")
		s.kept = append(s.kept, tn)
		return nil
	}, slog.New(slog.DiscardHandler))
	m := &Memory{Services: Services{Planner: s, Sessions: s, Turns: stepTurns{steps: s}, Figures: stepFigures{steps: s}, Doubts: noService{}, Pending: s.pending}}
	observer, err := observe.New(noop.Meter{}, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	return &pendingTurn{
		s: &Server{observer: observer, decider: &decider{log: slog.New(slog.NewTextHandler(log, nil)), memo: memo.New(0)}}, memory: m, chained: true, recall: true, fate: graphiti.Fate{Name: graphiti.FateOpen},
		turn: ledger.Turn{ID: "1", Session: "session:1", User: "please look it up in all of the files", Said: time.Now(), Targets: []graphiti.Target{{Group: "g"}}},
	}
}

// TestTurnOfACommandFile checks that a command file's text is stored as the command, also when
// the turn has tool rounds.
func TestTurnOfACommandFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{".opencode/command/deploy.md": "Deploy to $1.\n\nOur release manager is Ottokar."})
	for _, end := range []dialect.End{dialect.EndStop, dialect.EndToolCalls} {
		s := &steps{}
		e := ends(t, s, &bytes.Buffer{})
		e.repo, e.turn.User = workspace.Repo{Dir: dir, Root: dir}, "Deploy to Skye.\n\nOur release manager is Ottokar."
		e.answered(dialect.Answer{Text: "I shall look for the release in all of the files of the project.", End: end}, true)
		s.pending.Close()
		if len(s.kept) != 1 || s.kept[0].User != "/deploy Skye" {
			t.Errorf("got %+v, want the turn of /deploy Skye", s.kept)
		}
	}
}

// TestTurnIsStoredBeforeSlowSteps checks that a turn is stored before the steps that may
// wait, and that neither a panic in one step nor a full disk prevents the others.
func TestTurnIsStoredBeforeSlowSteps(t *testing.T) {
	const text = "It is done, and here is what was found."
	for _, tc := range []struct {
		name, panics string
		fails        bool
		want         []string
	}{
		{"all is well", "", false, []string{"session", "keep", "remember"}},
		{"the session panics", "session", false, []string{"session", "keep", "remember"}},
		{"short-term memory panics", "remember", false, []string{"session", "keep", "remember"}},
		{"keeping panics", "keep", false, []string{"session", "keep", "remember", "abandoned"}},
		{"the disk is full", "", true, []string{"session", "keep", "lost: store", "remember", "abandoned"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, log := &steps{panics: tc.panics, fails: tc.fails}, &bytes.Buffer{}
			e := ends(t, s, log)
			round := *e
			round.answered(dialect.Answer{Text: "I shall look.", End: dialect.EndToolCalls}, true)
			e.answered(dialect.Answer{Text: text, End: dialect.EndStop}, true)
			s.pending.Close() // stores the turns that are still open
			if diff := cmp.Diff(tc.want, s.done); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(s.kept) != 1 {
				t.Fatalf("%d turns were kept", len(s.kept))
			}
			if got := s.kept[0]; got.Open != slices.Contains(tc.want, "abandoned") || !got.Open && got.Assistant != text {
				t.Errorf("got %+v, want an answer that is open or whole", got)
			}
			if strings.Contains(log.String(), "secret") || tc.panics != "" && !strings.Contains(log.String(), "bug was contained") {
				t.Errorf("got %s, want no secret in it, and each bug named", log)
			}
		})
	}
}

// TestTurnIsAsOldAsItsMessage checks that a turn of several requests has the time of the
// first one, which sent the message.
func TestTurnIsAsOldAsItsMessage(t *testing.T) {
	s := &steps{}
	first := ends(t, s, &bytes.Buffer{})
	defer s.pending.Close()
	second, last := *first, *first
	second.turn.Said, last.turn.Said = first.turn.Said.Add(time.Minute), first.turn.Said.Add(time.Hour)
	first.answered(dialect.Answer{Text: "I shall look.", End: dialect.EndToolCalls}, true)
	second.answered(dialect.Answer{End: dialect.EndToolCalls}, true)
	last.answered(dialect.Answer{Text: "Done.", End: dialect.EndStop}, true)
	if len(s.kept) != 1 || !s.kept[0].Said.Equal(first.turn.Said) || s.kept[0].Answered.Before(first.turn.Answered) {
		t.Errorf("got %+v, want one turn, said when it was first, answered later", s.kept)
	}
}

// TestAnswerWithoutACleanEnd checks that an answer without a clean end is not stored as a
// turn, and is reported as lost. Tool calls, summaries and unfinished background answers
// are not lost.
func TestAnswerWithoutACleanEnd(t *testing.T) {
	const half = "half an answ"
	for _, tc := range []struct {
		name    string
		end     dialect.End
		clean   bool
		awaited bool
		kind    string
		want    []string
	}{
		{"cut off", dialect.EndUnknown, false, false, "", []string{"cut off: " + half, "lost: cut_off"}},
		{"cut off in a round", dialect.EndToolCalls, false, false, "", []string{"cut off: " + half, "lost: cut_off"}},
		{"cut off behind its end", dialect.EndStop, false, false, "", []string{"lost: cut_off"}},
		{"no end was said", dialect.EndUnknown, true, false, "", []string{"cut off: " + half, "lost: no_end"}},
		{"withheld", dialect.EndFilter, true, false, "", []string{"cut off: " + half, "lost: filtered"}},
		{"failed", dialect.EndError, true, false, "", []string{"cut off: " + half, "lost: error"}},
		{"calls a tool", dialect.EndToolCalls, true, false, "", nil},
		{"still being made", dialect.EndUnknown, true, true, "", nil},
		{"fetched, and failed", dialect.EndError, true, true, "", []string{"lost: error"}},
		{"a summary", dialect.EndUnknown, false, false, graphiti.KindSessionSummary, nil},
	} {
		s := &steps{}
		e := ends(t, s, &bytes.Buffer{})
		e.awaited, e.turn.Kind = tc.awaited, tc.kind
		e.answered(dialect.Answer{Text: half, End: tc.end}, tc.clean)
		if diff := cmp.Diff(tc.want, s.done); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		s.pending.Close()
	}
}

// TestTurnLeftOut checks that the ledger records an answered turn without memory, so that
// no transcript imports it.
func TestTurnLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		end  dialect.End
		want []string
	}{
		"answered":     {dialect.EndStop, []string{"cut off: Noted."}},
		"calls a tool": {dialect.EndToolCalls, []string{"cut off: Noted."}},
		"failed":       {dialect.EndError, nil},
	} {
		s := &steps{}
		e := ends(t, s, &bytes.Buffer{})
		e.fate = graphiti.Fate{Name: graphiti.FateOff, Reason: graphiti.OffOptOut}
		e.turn.Targets, e.chained, e.recall, e.child = nil, false, false, false
		e.answered(dialect.Answer{Text: "Noted.", End: tc.end}, true)
		if diff := cmp.Diff(tc.want, s.done); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		s.pending.Close()
	}
}

// TestPendingTurns_References checks that a reference leads to the turn that a request continues, for
// two hours.
func TestPendingTurns_References(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewPendingTurns(time.Hour, nil, slog.New(slog.DiscardHandler))
		defer d.Close()
		check := func(when string, reference dialect.Fingerprint, want string) {
			t.Helper()
			if got, ok := d.find(reference); got.turn.ID != want || ok != (want != "") {
				t.Errorf("%s: find = %q, %v, want %q", when, got.turn.ID, ok, want)
			}
		}
		m, at := &Memory{Services: Services{Pending: d}}, where{person: dialect.Root("", "o")}
		held := at.person.Link(dialect.RoleOther, []byte("conversation"))
		first := &pendingTurn{memory: m, at: at, held: held, turn: ledger.Turn{ID: "first"}}
		first.goesOn("answer 1")
		first.goesOn("answer 2")
		check("an answer", at.person.Reference("answer 1"), "first")
		check("its next", at.person.Reference("answer 2"), "first")
		check("another", at.person.Reference("answer 3"), "")
		check("of another person", dialect.Root("", "p").Reference("answer 1"), "")
		(&pendingTurn{memory: m, at: at, held: held, turn: ledger.Turn{ID: "second"}}).goesOn("")
		check("the conversation", held, "second")
		time.Sleep(roundsFor + time.Second)
		check("too long ago", at.person.Reference("answer 2"), "")
	})
}

// TestKnown checks that isKnown is false for a turn that states a new fact, even within its
// question.
func TestKnown(t *testing.T) {
	const block = "- Josh, 2026-01-05: My cat eats fish and chicken.\n- Josh, 2026-01-05: My cat is called Miso.\n"
	for name, tc := range map[string]struct {
		block, said, answer string
		want                bool
	}{
		"asked and answered of what is shown": {block, "What is my cat called?", "Your cat is called Miso.", true},
		"nothing was shown":                   {"", "What is my cat called?", "Your cat is called Miso.", false},
		"the answer says more":                {block, "What is my cat called?", "Miso, and she was born in Lisbon in 2019.", false},
		"a statement before the question":     {block, "My cat is ill. What is she called?", "Your cat is called Miso.", false},
		"a statement within the question":     {block, "Since my cat Luna is diabetic, what does she eat?", "Your cat eats fish and chicken.", false},
		"a statement in another script":       {"- 我的猫叫咪咪 吃鱼\n", "我的狗叫旺财。猫叫什么？", "猫叫咪咪", false},
	} {
		if got := isKnown(tc.block, tc.said, tc.answer); got != tc.want {
			t.Errorf("%s: known is %v, want %v", name, got, tc.want)
		}
	}
}
