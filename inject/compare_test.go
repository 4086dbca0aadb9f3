package inject

import (
	"slices"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestFactsOfUnknownStrengthAreCompared: of a small memory, a question gets its answer and not
// the rest, and a request that shares no word with it gets nothing.
func TestFactsOfUnknownStrengthAreCompared(t *testing.T) {
	port, db := "The falcon gateway listens on port 7411", "The falcon database is Postgres"
	falcon := []string{port, db, "The falcon compiler is Zig", "Argo deploys the falcon gateway"}
	for _, tc := range []struct {
		name, said string
		found      []string
		want       []string
	}{
		{"one answers", "Which port does the falcon gateway listen on?", falcon, falcon[:1]},
		{"one answers, ranked last", "Which port does the falcon gateway listen on?", []string{db, falcon[2], port}, []string{db, port}},
		{"a word that no fact has", "On which port does the gateway listen?", []string{"The gateway moved to port 7500", "The gateway stores records", "Records of the port are kept", "Zig compiles it"}, []string{"The gateway moved to port 7500", "The gateway stores records", "Records of the port are kept"}},
		{"a word that no fact has, and one that many have", "On which port does the gateway listen?", []string{"The gateway moved to port 7500", "The gateway stores records", "The gateway has a log", "The gateway is old"}, []string{"The gateway moved to port 7500"}},
		{"none has enough words", "Where does the gateway keep its records?", falcon, []string{port, db, falcon[2], falcon[3]}},
		{"one word in common", "Where do I live?", []string{"The user moved to Lisbon", "The user has a boat"}, []string{"The user moved to Lisbon", "The user has a boat"}},
		{"found by meaning among many", "Where do I live?", []string{"The user moved to Lisbon", "A", "B", "C", "The user lives well"}, []string{"The user moved to Lisbon", "A", "B", "The user lives well"}},
		{"several answer", "What is the falcon gateway?", falcon, []string{port, falcon[3]}},
		{"one repeats the question", "What are the depot and the ferry called?", []string{"What are the depot and the ferry called?", "The ferry is called Oleander"}, []string{"What are the depot and the ferry called?", "The ferry is called Oleander"}},
		{"a request of another subject", "Rename this variable to total, please.", falcon, nil},
		{"a request of the subject", "Write a health check for the gateway.", falcon, []string{port, falcon[3]}},
		{"it depends on an earlier question", "And the database?" + graphiti.Earlier + "Which port does falcon use?", falcon, falcon},
		{"shared words in another language", "Auf welchem Port lauscht das Gateway?", falcon, falcon[:1]},
	} {
		ch := chooser{now: time.Now(), asked: askedOf(tc.said), count: 12, max: 2000}
		var facts []graphiti.Fact
		for _, text := range tc.found {
			facts = append(facts, graphiti.Fact{Text: text})
		}
		var got []string
		for _, c := range ch.choose([]Scoped{{Scope: graphiti.ScopeUser, Facts: facts}}) {
			if c.Verdict == Shown {
				got = append(got, c.Fact.Text)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestFactsThatCompleteTheBest: if the best match is an earlier question, its turn has the answer,
// and a newer fact may correct it. An acknowledgment in its turn is not shown.
func TestFactsThatCompleteTheBest(t *testing.T) {
	asked, answer := "The test TestCheckout is flaky on CI", "The test was flaky because it compared the system clock with a stored timestamp"
	for _, tc := range []struct {
		name, question string
		found          []graphiti.Fact
		want           []string
	}{
		{"the answer of its turn", "Why was TestCheckout flaky?", []graphiti.Fact{{Text: asked, Episodes: []string{"a"}}, {Text: answer, Episodes: []string{"a"}}}, []string{asked, answer}},
		{"another turn", "Why was TestCheckout flaky?", []graphiti.Fact{{Text: asked, Episodes: []string{"a"}}, {Text: answer, Episodes: []string{"b"}}}, []string{asked}},
		{"unknown turns", "Why was TestCheckout flaky?", []graphiti.Fact{{Text: asked}, {Text: answer}}, []string{asked}},
		{"a newer one in other words", "On which port does the gateway listen?", []graphiti.Fact{
			{Text: "The gateway listens on port 7411", ValidAt: time.Unix(1, 0)}, {Text: "The gateway has moved now to port 7500", ValidAt: time.Unix(2, 0)}, {Text: "The gateway has a log", ValidAt: time.Unix(2, 0)},
		}, []string{"The gateway listens on port 7411", "The gateway has moved now to port 7500"}},
		{"an older one in other words", "On which port does the gateway listen?", []graphiti.Fact{
			{Text: "The gateway listens on port 7411", ValidAt: time.Unix(2, 0)}, {Text: "The gateway had port 7500", ValidAt: time.Unix(1, 0)}, {Text: "The gateway has a log", ValidAt: time.Unix(1, 0)},
		}, []string{"The gateway listens on port 7411"}},
		{"an acknowledgment", "On which port does the gateway run?", []graphiti.Fact{
			{Text: "The gateway has moved now to port 7500", Episodes: []string{"a"}}, {Text: "Noted, port 7500", Episodes: []string{"a"}},
			{Text: "Port 7411, Postgres 15", Episodes: []string{"b"}}, {Text: "Port 80", Episodes: []string{"c"}},
		}, []string{"The gateway has moved now to port 7500"}},
	} {
		ch := chooser{now: time.Now(), asked: askedOf(tc.question), count: 12, max: 2000}
		var got []string
		for _, c := range ch.choose([]Scoped{{Scope: graphiti.ScopeUser, Facts: tc.found}}) {
			if c.Verdict == Shown {
				got = append(got, c.Fact.Text)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestGeneralRelationHidesNoFact: two facts of the same relation between the same entities that
// say different things are both shown, as a model may use one relation for all.
func TestGeneralRelationHidesNoFact(t *testing.T) {
	now := time.Now()
	facts := []graphiti.Fact{
		{Text: "Osprey is written in Rust", Name: "RELATES_TO", Source: "user", Target: "osprey", ValidAt: now.Add(-time.Hour)},
		{Text: "Osprey reads events from Kafka", Name: "RELATES_TO", Source: "user", Target: "osprey", ValidAt: now.Add(-time.Minute)},
	}
	ch := chooser{now: now, count: 12, max: 2000}
	for _, c := range ch.choose([]Scoped{{Scope: graphiti.ScopeUser, Facts: facts}}) {
		if c.Verdict != Shown {
			t.Errorf("%q: got %v, want it shown", c.Fact.Text, c.Verdict)
		}
	}
}
