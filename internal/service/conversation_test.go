package service_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// hashOf returns the hash of a conversation.
func hashOf(session string) string { return graphiti.SessionHash("session:" + session) }

// conversation returns a conversation as text, one line for each turn.
func conversation(x service.Explained) (lines []string) {
	for _, t := range x.Turns {
		var said []string
		for _, r := range t.Messages {
			said = append(said, r.Role+" in the "+r.Where+": "+r.Text)
		}
		lines = append(lines, strings.Join(said, " | "))
	}
	return lines
}

// TestConversation checks that every memory finds a conversation by its hash and by each of
// its messages, and returns its own turns only, in order.
func TestConversation(t *testing.T) {
	memories(t, func(t *testing.T, m *servicetest.Fixture, settle func()) {
		var list []ledger.Turn
		for i := range 5 {
			one := turn(fmt.Sprintf("%032x", i+1), "s1", fmt.Sprintf("Bed %d is for beans.", i), fmt.Sprintf("Bed %d, noted for the beans.", i))
			one.Said = one.Said.Add(time.Duration(i) * time.Minute)
			one.Answered = one.Said.Add(time.Second)
			other := turn(fmt.Sprintf("%032x", i+100), "s2", fmt.Sprintf("Bed %d is for peas.", i), "Peas it is, then.")
			list = append(list, one, other)
		}
		add(t, m, settle, list...)
		x := run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf("s1"), Limit: 2, Skip: 1})
		bed := func(i int) string {
			return fmt.Sprintf("user in the memory: Bed %d is for beans. | assistant in the memory: Bed %d, noted for the beans.", i, i)
		}
		if diff := cmp.Diff([]string{bed(2), bed(3)}, conversation(x)); diff != "" || x.AllTurns != 5 || x.Messages != 10 || x.Begins != "Bed 0 is for beans." || x.In != "you" && x.In != "josh" {
			t.Errorf("%+v (-want +got):\n%s", x, diff)
		}
		if x.Turns[0].ID != list[4].ID || x.Turns[0].Decision != nil || x.First == x.Last || len(x.Memories) != 1 || x.Memories[0].Messages != 10 {
			t.Errorf("%+v", x)
		}
		id := graphiti.MessageID(graphiti.EpisodeName(list[8].ID, graphiti.RoleAssistant))
		out, entry, err := call(t, m, "memory/conversation", `{"message":"`+id+`"}`)
		x, _ = out.(service.Explained)
		if err != nil || x.Hash != hashOf("s1") || len(x.Turns) != 5 || entry.What != "show a conversation" || !slices.Equal(entry.Groups, []string{servicetest.OwnersGroup}) {
			t.Errorf("by a message: %+v, %+v, %v", x, entry, err)
		}
		first := service.Selector{Message: graphiti.MessageID(graphiti.EpisodeName(list[0].ID, graphiti.RoleUser))}
		if diff := cmp.Diff([]string{bed(0), bed(1)}, conversation(run(t, m, service.TurnsOf, service.ConversationRequest{Selector: first, Limit: 2}))); diff != "" {
			t.Errorf("around a message (-want +got):\n%s", diff)
		}
		if x := run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf("s1"), Limit: 2, Skip: 9}); len(x.Turns) != 0 || x.AllTurns != 5 {
			t.Errorf("behind its end: %+v", x)
		}
	})
}

// TestConversationRefused checks the errors of invalid requests, and that another person's
// conversation is not shown.
func TestConversationRefused(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", "", "My cat is called Miso.")
	_, id := texts(t, m, "Miso")
	for in, says := range map[string]string{
		`{}`:                                                     "hash: name the conversation",
		`{"hash":"x","message":"y"}`:                             "hash: name the conversation",
		`{"hash":"x","session":"s1"}`:                            "already selects",
		`{"hash":"x","skip":-1}`:                                 "skip must be",
		`{"hash":"x","limit":1001}`:                              "limit must be",
		`{"hash":"x","limit":-1}`:                                "limit must be",
		`{"hash":"` + hashOf("s2") + `"}`:                        "the person has no messages",
		`{"hash":"%' OR 1=1 --\u0000\n"}`:                        "the person has no messages",
		`{"message":"123456789abc"}`:                             "message with the id",
		`{"message":"` + id + `","own":true}`:                    "own: adds",
		`{"hash":"` + hashOf("s1") + `","user":"ann"}`:           "the person has no messages",
		`{"message":"` + id + `","user":"ann"}`:                  "message with the id",
		`{"hash":"` + hashOf("s1") + `","group":"a/b"}`:          "not the id of a group",
		`{"hash":"` + strings.Repeat("x", 5000) + `","limit":5}`: "the person has no messages",
	} {
		if _, _, err := call(t, m, "memory/conversation", in); err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 300 {
			t.Errorf("%.60s: %v, want %q", in, err, says)
		}
	}
}

// TestConversationOfAProject checks that a project's conversation includes its promoted
// texts, that a text promoted outside of a conversation is shown alone, and that a caller
// sees no conversation in a group that others write to.
func TestConversationOfAProject(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", widgets, "We deploy with Helm.")
	m.Say(t, "ann", "s3", widgets, "I deploy with kubectl.")
	run(t, m, service.Promote, service.PromoteRequest{Selector: service.Selector{Workspace: widgets, Session: "s1"}, Promotion: service.Promotion{Kind: "decision", Scope: "workspace", Text: "Helm only"}})
	run(t, m, service.Promote, service.PromoteRequest{Selector: service.Selector{Session: "s4"}, Promotion: service.Promotion{Kind: "decision", Scope: "session", Text: "This one is short"}})
	m.Settle(t)
	x := run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf("s1"), Limit: 10})
	if len(x.Turns) != 3 || x.In != "acme/widgets" || !strings.Contains(strings.Join(conversation(x), "\n"), "system in the memory: <graphiti_episode") {
		t.Errorf("%+v", x)
	}
	run(t, m, service.Promote, service.PromoteRequest{Selector: service.Selector{User: "josh"}, Promotion: service.Promotion{Kind: "preference", Text: "Tabs, not spaces"}})
	_, id := texts(t, m, "Tabs")
	if x := run(t, m, service.TurnsOf, service.ConversationRequest{Selector: service.Selector{Message: id}, Limit: 10}); len(x.Turns) != 1 || x.Hash != "" || !strings.Contains(x.Turns[0].Messages[0].Text, "Tabs") {
		t.Errorf("a text that was said in no conversation: %+v", x)
	}
	if x := run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf("s4"), Limit: 10}); len(x.Turns) != 1 || x.Session != "s4" {
		t.Errorf("in a group of its own: %+v", x)
	}
	for _, tc := range []struct {
		user, session string
		sees          bool
	}{{"josh", "s1", false}, {"ann", "s3", false}, {"josh", "s4", true}, {"ann", "s4", false}} {
		asks := service.Caller{Own: service.Selector{User: tc.user}}
		_, _, err := service.TurnsOf.Call(t.Context(), m.Host, asks, func(in any) error {
			in.(*service.ConversationRequest).Hash = hashOf(tc.session) //nolint:forcetypeassert // the input of TurnsOf
			return nil
		}, nil)
		if (err == nil) != tc.sees || err != nil && !strings.Contains(err.Error(), "the person has no messages") {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// TestConversationThatWaits checks that turns that wait for Graphiti are shown in their
// conversation, also while Graphiti is down.
func TestConversationThatWaits(t *testing.T) {
	g := startGraphiti(t, "graphiti")
	m := onGraphiti(t, "graphiti", g)
	add(t, m, func() { m.Settle(t) }, turn(strings.Repeat("1a", 16), "s1", "My cat is called Miso.", ""))
	g.Close()
	later := turn(strings.Repeat("2b", 16), "s1", "My dog is called Rex.", "")
	later.Said = later.Said.Add(time.Hour)
	add(t, m, func() {}, later)
	want := []string{"user in the memory: My cat is called Miso.", "user in the memory: My dog is called Rex."}
	if diff := cmp.Diff(want, conversation(run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf("s1"), Limit: 10}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	id := graphiti.MessageID(graphiti.EpisodeName(later.ID, graphiti.RoleUser))
	if x := run(t, m, service.TurnsOf, service.ConversationRequest{Selector: service.Selector{Message: id}, Limit: 10}); len(x.Turns) != 2 {
		t.Errorf("by a message that waits: %+v", x)
	}
}

// decided stores a decision about a turn.
func decided(t *testing.T, m *servicetest.Fixture, id string, d inject.Decision, groups ...string) {
	t.Helper()
	raw, err := hex.DecodeString(id)
	must(t, err)
	d.Generation = m.State.Generations.Now()
	must(t, helptest.ErrorOf(m.State.Decisions.Keep(t.Context(), [16]byte(raw), d, groups...)))
}

// pieces returns the decision of a planner about a message whose search finds the given
// facts.
func pieces(t *testing.T, m *servicetest.Fixture, asked string, found ...graphiti.Fact) inject.Decision {
	t.Helper()
	kept := &keeps{}
	planner := inject.New(inject.Services{
		Search: finds(found), Decisions: kept, Snapshots: m.State.Snapshots, Opening: noCard{}, Redact: m.Pipeline.RedactedBy,
		Decides: func(context.Context, string) bool { return false }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, reads{}, inject.RecallSettings{
		Timeout: 10 * time.Second, MaxFacts: 12, Asked: 24, MaxChars: 2000, MinScore: 0.15,
	})
	t.Cleanup(planner.Close)
	kept.plan(t, planner, asked)
	return kept.d
}

// TestDecisionsOfOthersAreNotShown checks that a caller who is no operator does not see the
// decision about another person's message, even after importing a message with the same
// name.
func TestDecisionsOfOthersAreNotShown(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	said := turn(strings.Repeat("2b", 16), "s2", "Which rules?", "")
	add(t, m, func() { m.Settle(t) }, said)
	d := pieces(t, m, "Which rules are there?", graphiti.Fact{Text: "A rule of the owner's", Episode: "n", Group: servicetest.OwnersGroup})
	decided(t, m, said.ID, d, servicetest.OwnersGroup)
	forged := service.Line{Where: "memory", Scope: "user", Role: "user", Content: "Mine.", Episode: graphiti.EpisodeName(said.ID, graphiti.RoleUser), Source: `{"session":"` + hashOf("s2") + `"}`}
	if _, err := m.Memory.Import(t.Context(), &service.ImportRequest{Selector: service.Selector{User: "ann"}, Lines: []service.Line{forged}}); err != nil {
		t.Fatal(err)
	}
	m.Settle(t)
	for user, sees := range map[string]bool{"josh": true, "ann": false} {
		out, _, err := service.TurnsOf.Call(t.Context(), m.Host, service.Caller{Own: service.Selector{User: user}}, func(in any) error {
			in.(*service.ConversationRequest).Hash = hashOf("s2") //nolint:forcetypeassert // the input of TurnsOf
			return nil
		}, nil)
		x, _ := out.(service.Explained)
		if err != nil || len(x.Turns) != 1 || x.Turns[0].ID != said.ID {
			t.Fatalf("%s: %+v, %v", user, x, err)
		}
		if b, _ := json.Marshal(x); (x.Turns[0].Decision != nil) != sees || strings.Contains(string(b), "rule of the owner") != sees {
			t.Errorf("%s: %s", user, b)
		}
	}
}

// TestSilenceIsExplained checks that a sentence explains a decision without a block and
// gives the missing strength, and that the reason of another version is shown unchanged.
func TestSilenceIsExplained(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	weak := pieces(t, m, "Which rules are there?", graphiti.Fact{Text: "Ann grows beans", Episode: "n", Strength: 0.0849, Weighed: true}, graphiti.Fact{Text: "Ben has a boat", Episode: "o", Strength: 0.04, Weighed: true})
	for i, tc := range []struct {
		d    inject.Decision
		want string
	}{
		{weak, "the best match was too weak to show: its strength is 0.08, the threshold 0.15"},
		{inject.Decision{Reason: "weak"}, "no match is strong enough"},
		{inject.Decision{Reason: "routine"}, "the message asks nothing, for example \"continue\" or \"thanks\""},
		{inject.Decision{}, "the memory was too slow or failed, or recall.enabled is false"},
		{inject.Decision{Reason: "of tomorrow"}, "of tomorrow"},
		{inject.Decision{Facts: 2}, "the block was emptied, because a fact of its memory was forgotten or corrected"},
		{inject.Decision{Block: "<graphiti_memory>", Facts: 1, Pieces: "damaged"}, ""},
	} {
		one := turn(fmt.Sprintf("%032x", i+1), "s1", fmt.Sprintf("Which rule has number %d?", i), "")
		one.Said = one.Said.Add(time.Duration(i) * time.Minute)
		add(t, m, func() { m.Settle(t) }, one)
		decided(t, m, one.ID, tc.d, servicetest.OwnersGroup)
		x := run(t, m, service.TurnsOf, service.ConversationRequest{Hash: hashOf("s1"), Limit: 1})
		d := x.Turns[0].Decision
		if d == nil || d.Why != tc.want || d.Gone != (tc.d.Facts == 2) || d.Reason != tc.d.Reason {
			t.Errorf("%+v: %+v", tc.d, d)
		}
		if strings.Contains(x.Note, "no longer readable") != (tc.d.Pieces == "damaged") {
			t.Errorf("%+v: %q", tc.d, x.Note)
		}
	}
}

// finds is a searcher that returns the same facts for every query.
type finds []graphiti.Fact

func (f finds) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) { return f, nil }
func (finds) Weighs() bool                                                             { return true }

// noCard is a card without entries.
type noCard struct{}

func (noCard) Standing(context.Context, graphiti.Who) ([]graphiti.Fact, error) { return nil, nil }

// reads directs all reads and writes to the owner's group.
type reads struct{}

func (reads) Beside(graphiti.Who) (graphiti.Target, bool) { return graphiti.Target{}, false }

func (reads) Reads(graphiti.Who, bool) []graphiti.Target { return own }
func (reads) Writes(graphiti.Who) []graphiti.Target      { return own }

// keeps is a store that holds the latest decision.
type keeps struct{ d inject.Decision }

func (k *keeps) Lookup(_ context.Context, _ int64, keys [][16]byte) ([]*inject.Decision, error) {
	return make([]*inject.Decision, len(keys)), nil
}

func (k *keeps) Keep(_ context.Context, _ [16]byte, d inject.Decision, _ ...string) (*inject.Decision, error) {
	k.d = d
	return &d, nil
}

func (k *keeps) Drop(_ context.Context, _ [16]byte, d inject.Decision) error {
	k.d = d
	return nil
}

// plan lets a planner decide about a message.
func (k *keeps) plan(t *testing.T, planner *inject.Planner, asked string) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"messages": []any{map[string]string{"role": "user", "content": asked}}})
	var c dialect.Conversation
	if !(chat.Dialect{}).Parse(body, &c) {
		t.Fatal("not understood")
	}
	planner.Plan(t.Context(), &c, make([]dialect.Fingerprint, len(c.Messages)), graphiti.Who{User: servicetest.Owner, Session: "session:x"}, true, inject.Mode{Recall: true, Ingest: true})
}
