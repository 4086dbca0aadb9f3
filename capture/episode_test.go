package capture

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestWhatAModelReadsOfATurn checks that a turn becomes one message, or one per side, and
// none if it has no content.
func TestWhatAModelReadsOfATurn(t *testing.T) {
	for name, tc := range map[string]struct {
		turn ledger.Turn
		per  Episodes
		have ledger.Sides
		want []string
	}{
		"both sides in one":                   {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, 0, []string{"My cat is called Miso.\n(assistant): Noted."}},
		"a message each":                      {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerMessage, 0, []string{"My cat is called Miso.", "Noted."}},
		"with a speaker's name":               {ledger.Turn{Speaker: "josh", User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, 0, []string{"My cat is called Miso.\njosh(assistant): Noted."}},
		"the group has one side":              {ledger.Turn{User: "My cat is called Miso.", Assistant: "Noted."}, PerTurn, ledger.SideUser, []string{"Noted."}},
		"one side":                            {ledger.Turn{User: "My cat is called Miso."}, PerTurn, 0, []string{"My cat is called Miso."}},
		"the rest of a turn":                  {ledger.Turn{Assistant: "Done."}, PerTurn, 0, []string{"Done."}},
		"nobody says anything":                {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerTurn, 0, nil},
		"nor in a message each":               {ledger.Turn{User: "ok thanks", Assistant: "Noted."}, PerMessage, 0, nil},
		"yes, to a question":                  {ledger.Turn{User: "yes", Assistant: "Noted.", Asked: true}, PerTurn, 0, []string{"yes\n(assistant): Noted."}},
		"nor in whole sentences":              {ledger.Turn{User: "ok thanks", Assistant: "You are welcome."}, PerTurn, 0, nil},
		"nor in German":                       {ledger.Turn{User: "danke!", Assistant: "Gerne."}, PerTurn, 0, nil},
		"the answer to a nod":                 {ledger.Turn{User: "go on", Assistant: "The build fails because Node 18 is missing."}, PerTurn, 0, []string{"go on\n(assistant): The build fails because Node 18 is missing."}},
		"a word that tells":                   {ledger.Turn{User: "Tokyo", Assistant: "Noted."}, PerTurn, 0, []string{"Tokyo\n(assistant): Noted."}},
		"asked and answered of what is known": {ledger.Turn{User: "What is my cat called?", Assistant: "Miso.", Known: true}, PerTurn, 0, nil},
	} {
		tc.turn.ID = "1"
		tc.turn.Said = time.Unix(0, 0)
		var got []string
		for _, m := range episodesOf(&tc.turn, graphiti.ScopeUser, tc.have, tc.per, 1000, time.Now()) {
			got = append(got, m.Text)
			if sides := m.Sides(); tc.per == PerTurn && tc.turn.Kind == "" && tc.have == 0 && tc.turn.User != "" && tc.turn.Assistant != "" && (len(sides) != 2 || sides[0].Text != tc.turn.User || sides[1].Text != tc.turn.Assistant) {
				t.Errorf("%s: read back as %+v", name, sides)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
