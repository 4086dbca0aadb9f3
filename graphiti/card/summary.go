package card

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Summary has the parts of a client's summary of a conversation.
type Summary struct {
	About string `json:"about,omitempty"` // one line; may be empty
	Open  string `json:"open,omitempty"`  // open points, in one line; may be empty
}

// summaries returns the name of the list of a session's summaries in a project.
func summaries(group, session, owner string) string {
	return "summary:" + group + ":" + graphiti.SessionScopeOf(session, owner)
}

// keepSummary stores the parts of a conversation's summary in a project's group.
func (c Cards) keepSummary(ctx context.Context, t *ledger.Turn, group string) error {
	s := readSummary(t.User)
	if s == (Summary{}) || t.OfSession() == "" {
		return nil
	}
	body, _ := json.Marshal(s) // strings only
	return c.Lists.Add(ctx, summaries(group, t.OfSession(), t.Owner), body, t.Generation,
		group, graphiti.SessionScopeOf(t.OfSession(), ""), graphiti.SessionScopeOf(t.OfSession(), t.Owner))
}

// Summary returns the newest summary of a session, given by its hash, in a project's group.
// It returns the zero Summary if there is none.
func (c Cards) Summary(ctx context.Context, group, session, owner string) (s Summary, err error) {
	first := true
	err = c.Lists.Entries(ctx, func(_ string, body []byte) {
		if first {
			_ = json.Unmarshal(body, &s) // an unreadable entry counts as empty
			first = false
		}
	}, summaries(group, session, owner))
	return s, err
}

// openPoints bounds the open points of a Summary.
const openPoints = 3

// readSummary finds the parts of a summary.
func readSummary(text string) Summary {
	s := words.ReadSummary(text)
	return Summary{About: shorten(s.About), Open: shorten(strings.Join(s.Open[:min(len(s.Open), openPoints)], "; "))}
}
