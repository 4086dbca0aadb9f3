package capture

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestMessagesOfTurn checks that a turn becomes one message, or one per side, and
// none if it has no content.
func TestMessagesOfTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		turn ledger.Turn
		per  Episodes
		want []string
	}{
		"both sides in one":                   {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, []string{"My cat is called Miso.\n(assistant): Noted."}},
		"a message each":                      {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerMessage, []string{"My cat is called Miso.", "Noted."}},
		"with a speaker's name":               {ledger.Turn{Speaker: "josh", User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, []string{"My cat is called Miso.\njosh(assistant): Noted."}},
		"one side":                            {ledger.Turn{User: "My cat is called Miso."}, PerTurn, []string{"My cat is called Miso."}},
		"the rest of a turn":                  {ledger.Turn{Assistant: "Done."}, PerTurn, []string{"Done."}},
		"nobody says anything":                {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerTurn, nil},
		"nor in a message each":               {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerMessage, nil},
		"yes, to a question":                  {ledger.Turn{User: "yes", Assistant: "Noted.", Asked: true}, PerTurn, []string{"yes\n(assistant): Noted."}},
		"nor in whole sentences":              {ledger.Turn{User: "ok thanks", Assistant: "You are welcome."}, PerTurn, nil},
		"nor in German":                       {ledger.Turn{User: "danke!", Assistant: "Gerne."}, PerTurn, nil},
		"the answer to a nod":                 {ledger.Turn{User: "go on", Assistant: "The build fails because Node 18 is missing."}, PerTurn, []string{"go on\n(assistant): The build fails because Node 18 is missing."}},
		"a word that tells":                   {ledger.Turn{User: "Tokyo", Assistant: "Noted."}, PerTurn, []string{"Tokyo\n(assistant): Noted."}},
		"asked and answered of what is known": {ledger.Turn{User: "What is my cat called?", Assistant: "Miso.", Known: true}, PerTurn, nil},
	} {
		tc.turn.ID = "1"
		tc.turn.Said = time.Unix(0, 0)
		var got []string
		var messages []graphiti.Row
		if worthCopy(&tc.turn) {
			messages = messagesOf(&tc.turn, graphiti.ScopeUser, 1000, time.Now())
		}
		for _, m := range episodesOf(messages, tc.per) {
			got = append(got, m.Text)
			if sides := m.Sides(); tc.per == PerTurn && tc.turn.Kind == "" && tc.turn.User != "" && tc.turn.Assistant != "" && (len(sides) != 2 || sides[0].Text != tc.turn.User || sides[1].Text != tc.turn.Assistant) {
				t.Errorf("%s: read back as %+v", name, sides)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
