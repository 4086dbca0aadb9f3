package inject

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// saidIn holds recent messages by group.
type saidIn map[string][]graphiti.Fact

func (s saidIn) Recent(_ context.Context, group, _ string, _ int) ([]graphiti.Fact, error) {
	return s[group], nil
}

// message returns a message as a search result.
func message(text string, at time.Time, strength float64) graphiti.Fact {
	said := "user, " + at.UTC().Format(time.DateOnly)
	return graphiti.Fact{Text: said + ": " + text, Said: said, Dated: true, CreatedAt: at, ValidAt: at, Episode: "turn of " + text, Strength: strength, Weighed: true}
}

// seen returns a message with its id in the memory.
func seen(f graphiti.Fact, id string) graphiti.Fact {
	f.Episodes = []string{id}
	return f
}

func TestWhatWasSaidRecentlyIsShownBesideTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		before, after := now.Add(-time.Hour), now.Add(time.Second)
		fact := func(text string, created time.Time) graphiti.Fact {
			return graphiti.Fact{Text: text, CreatedAt: created}
		}
		day := now.UTC().Format(time.DateOnly)
		canoe, line := "My canoe is called Wanda.", "user, "+day+": My canoe is called Wanda."
		for _, tc := range []struct {
			name   string
			said   graphiti.Fact
			known  []graphiti.Fact
			fails  error
			slow   bool
			lines  []string
			want   Status
			source Source
		}{
			{name: "nothing else is known", said: message(canoe, now, 0.9), lines: []string{line}, want: StatusRecalled, source: SourceLocal},
			{name: "the memory is down", said: message(canoe, now, 0.9), fails: errors.New("refused"), lines: []string{line}, want: StatusRecalled, source: SourceLocal},
			{name: "the memory is slow", said: message(canoe, now, 0.9), slow: true, lines: []string{line}, want: StatusRecalled, source: SourceLocal},
			{name: "too weak, and the memory is down", said: message(canoe, now, 0.1), fails: errors.New("refused"), want: StatusError},
			{name: "too weak, and the memory is slow", said: message(canoe, now, 0.1), slow: true, want: StatusTimeout},
			{name: "another fact is known", said: message(canoe, now, 0.9), known: []graphiti.Fact{fact("Miso is a cat", before)},
				lines: []string{line, "Miso is a cat"}, want: StatusRecalled, source: SourceLive},
			{name: "a fact came from it", said: message(canoe, now, 0.9), known: []graphiti.Fact{fact("The user's canoe is called Wanda", after)},
				lines: []string{"The user's canoe is called Wanda"}, want: StatusRecalled, source: SourceLive},
			{name: "the fact that came from it is no longer true", said: message(canoe, before, 0.9),
				known: []graphiti.Fact{{Text: "The user's canoe is called Wanda", CreatedAt: before.Add(time.Minute), InvalidAt: before.Add(2 * time.Minute)}, fact("Miso is a cat", before)},
				lines: []string{"Miso is a cat"}, want: StatusRecalled, source: SourceLive},
			{name: "a correction in the same second ended the fact that came from it", said: seen(message(canoe, before.Add(400*time.Millisecond), 0.9), "1"),
				known: []graphiti.Fact{{Text: "The boat answers to Wanda", CreatedAt: before.Add(time.Minute), InvalidAt: before, Episodes: []string{"1"}}, fact("Miso is a cat", before)},
				lines: []string{"Miso is a cat"}, want: StatusRecalled, source: SourceLive},
			{name: "an unrelated fact ended the one that came from it", said: message(canoe, before, 0.9),
				known: []graphiti.Fact{
					{Text: "The user's canoe is called Wanda", Source: "canoe", Target: "Wanda", CreatedAt: before.Add(time.Minute), InvalidAt: before.Add(2 * time.Minute)},
					{Text: "Miso is a cat", Source: "Miso", Target: "cat", CreatedAt: before.Add(2 * time.Minute), ValidAt: before.Add(2 * time.Minute)},
				},
				lines: []string{"Miso is a cat (since " + before.Add(2*time.Minute).UTC().Format(time.DateOnly) + ")", "user, " + before.UTC().Format(time.DateOnly) + ": My canoe is called Wanda."}, want: StatusRecalled, source: SourceLive},
			{name: "a fact about the canoe ended the one that came from it", said: message(canoe, before, 0.9),
				known: []graphiti.Fact{
					{Text: "The user's canoe is called Wanda", Source: "canoe", Target: "Wanda", CreatedAt: before.Add(time.Minute), InvalidAt: before.Add(2 * time.Minute)},
					{Text: "The canoe was renamed to Otto", Source: "canoe", Target: "Otto", CreatedAt: before.Add(2 * time.Minute), ValidAt: before.Add(2 * time.Minute)},
				},
				lines: []string{"The canoe was renamed to Otto (since " + before.Add(2*time.Minute).UTC().Format(time.DateOnly) + ")"}, want: StatusRecalled, source: SourceLive},
			{name: "a fact has the value before, of the same second", said: message("My canoe Wanda has moved now to berth 12.", now, 0.9), known: []graphiti.Fact{{Text: "The user's canoe Wanda has moved now to berth 11", CreatedAt: after, ReferenceTime: now}},
				lines: []string{"user, " + day + ": My canoe Wanda has moved now to berth 12.", "The user's canoe Wanda has moved now to berth 11"}, want: StatusRecalled, source: SourceLive},
			{name: "it is true again", said: message(canoe, now, 0.9),
				known: []graphiti.Fact{{Text: "The user's canoe is called Wanda", CreatedAt: before, InvalidAt: before.Add(time.Minute)}},
				lines: []string{line}, want: StatusRecalled, source: SourceLocal},
			{name: "a fact names it", said: seen(message(canoe, now, 0.9), "1"), known: []graphiti.Fact{{Text: "The boat answers to Wanda", CreatedAt: after, Episodes: []string{"0", "1"}}},
				lines: []string{"The boat answers to Wanda"}, want: StatusRecalled, source: SourceLive},
			{name: "a fact names another", said: seen(message(canoe, now, 0.9), "1"), known: []graphiti.Fact{{Text: "The boat answers to Wanda", CreatedAt: after, Episodes: []string{"2"}}},
				lines: []string{"The boat answers to Wanda", line}, want: StatusRecalled, source: SourceLive},
			{name: "the fact that names it was no longer true", said: seen(message(canoe, now, 0.9), "1"),
				known: []graphiti.Fact{{Text: "The boat answers to Wanda", CreatedAt: before, InvalidAt: before.Add(time.Minute), Episodes: []string{"0", "1"}}},
				lines: []string{line}, want: StatusRecalled, source: SourceLocal},
			{name: "it was known before", said: message(canoe, now, 0.9), known: []graphiti.Fact{fact("The canoe is called Wanda", before)},
				lines: []string{"The canoe is called Wanda"}, want: StatusRecalled, source: SourceLive},
			{name: "a fact of an earlier message was read later", said: message("My canoe is called Wanda and leaks at the stern.", now, 0.9),
				known: []graphiti.Fact{{Text: "The canoe is called Wanda", CreatedAt: after, ReferenceTime: before}},
				lines: []string{"user, " + day + ": My canoe is called Wanda and leaks at the stern.", "The canoe is called Wanda"}, want: StatusRecalled, source: SourceLive},
			{name: "it says more than was known", said: message("My canoe is called Wanda and leaks at the stern.", now, 0.9), known: []graphiti.Fact{fact("The canoe is called Wanda", before)},
				lines: []string{"user, " + day + ": My canoe is called Wanda and leaks at the stern.", "The canoe is called Wanda"}, want: StatusRecalled, source: SourceLive},
		} {
			m := New(Services{
				Search: searchFunc(func(ctx context.Context, group, _ string) ([]graphiti.Fact, error) {
					if tc.slow {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					if group != "u" {
						return nil, tc.fails
					}
					return tc.known, tc.fails
				}),
				Recent: saidIn{"u": {tc.said}}, Facts: &fakeFacts{}, Decisions: &fakeDecisions{},
			}, targets{}, RecallSettings{Timeout: 400 * time.Millisecond, Background: time.Second, MaxFacts: 12, Asked: 24, MaxChars: 2000, MinScore: 0.25})
			got, p := ask(t, m, turn1about, both)
			want := turn1about
			if tc.lines != nil {
				want = withBlocks(turn1about, map[string]string{about: blockOf(tc.lines...)})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the upstream gets (-want +got):\n%s", tc.name, diff)
			}
			if p.Outcome.Status != tc.want || p.Outcome.Source != tc.source {
				t.Errorf("%s: %s, source %q; want %s, %q", tc.name, p.Outcome.Status, p.Outcome.Source, tc.want, tc.source)
			}
			m.Close()
		}
	})
}

const (
	about      = "What is my canoe called?"
	turn1about = `{"messages":[{"role":"user","content":"` + about + `"}]}`
)

// TestChooser_FactOfOwnMessage checks that a fact from a message of the same conversation
// is not shown in it, if the service names the message or the fact has its words.
func TestChooser_FactOfOwnMessage(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	own, other := seen(message("My canoe is called Wanda.", at, 0.9), "1"), seen(message("My dinghy is called Otto.", at, 0.9), "2")
	ch := chooser{now: time.Now(), ownTurns: map[string]struct{}{own.Episode: {}}, count: 12, max: 2000}
	ch.hears([][]graphiti.Fact{{own}, {other}})
	for _, tc := range []struct {
		name string
		fact graphiti.Fact
		want Verdict
	}{
		{"names the message", graphiti.Fact{Text: "The boat answers to Wanda", CreatedAt: at.Add(time.Minute), Episodes: []string{"1"}}, OwnWords},
		{"has its words", graphiti.Fact{Text: "The user's canoe is called Wanda", CreatedAt: at.Add(time.Minute)}, OwnWords},
		{"is older", graphiti.Fact{Text: "The canoe is called Wanda", CreatedAt: at.Add(-time.Minute), Episodes: []string{"1"}}, Shown},
		{"of another conversation", graphiti.Fact{Text: "The user's dinghy is called Otto", CreatedAt: at.Add(time.Minute), Episodes: []string{"2"}}, Shown},
	} {
		if got := ch.look(&tc.fact, graphiti.ScopeUser); got.Verdict != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got.Verdict, tc.want)
		}
	}
}
