package service

import (
	"fmt"
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// reasons say for people why a turn has no block. The list is that of inject.Reasons.
var reasons = map[inject.Reason]string{
	inject.ReasonNone:          "the search failed or timed out",
	inject.ReasonTitle:         "the client requested a title for itself",
	inject.ReasonSummary:       "the client requested a summary for itself",
	inject.ReasonProbe:         "the client tested its connection to the provider",
	inject.ReasonMachine:       "a program sent the request, not a person",
	inject.ReasonSubagent:      "another agent sent the request, not a person",
	inject.ReasonEncoding:      "the proxy could not decode the request body",
	inject.ReasonTooLarge:      "the request body exceeds limits.inspect_bytes",
	inject.ReasonNoUserMessage: "the request contains no message of a person",
	inject.ReasonNotPersisted:  "the decision could not be stored, and a block that is not stored could not be replayed",
	inject.ReasonConsent:       "the configuration does not allow sending conversations to the memory",
	inject.ReasonOptOut:        "memory was switched off by the request or by a setting",
	inject.ReasonUntrusted:     "the caller was in doubt, or workspace.trusted does not list the project",
	inject.ReasonNobody:        "the request identified no person, so no memory was searched",
	inject.ReasonPlace:         "the client's project was unknown",
	inject.ReasonForgotten:     "a forget request emptied an earlier block of the conversation, so it gets no more blocks",
	inject.ReasonAPI:           "the model API of the request has no memory",
	inject.ReasonRefused:       "the provider rejected the request with a block, so the proxy sent it again without one",
	inject.ReasonState:         "a file in data_dir was unusable",
	inject.ReasonBusy:          "other requests used up the budget for inspection",
	inject.ReasonNothing:       "the memory has no match",
	inject.ReasonWeak:          "the best match was too weak to show",
	inject.ReasonVisible:       "the conversation already contains every match",
	inject.ReasonRoutine:       "the message contains no question to search for",
}

// why says for people why a decision shows no block, or no block any more; empty: it shows
// one.
func why(d *inject.Decision, c *inject.Considered) string {
	switch {
	case d.Block != "":
		return ""
	case d.Facts > 0:
		return "the block was emptied, because a fact of its memory was forgotten or corrected"
	case inject.Reason(d.Reason) == inject.ReasonWeak:
		if best, ok := strongest(c); ok && best < c.MinScore {
			return fmt.Sprintf("the best match was too weak to show: its strength is %.2f, the threshold %.2f", math.Floor(100*best)/100, c.MinScore) // 0.149 is less than 0.15
		}
	}
	if says, ok := reasons[inject.Reason(d.Reason)]; ok {
		return says
	}
	return d.Reason // of another version
}

// strongest is how well the best of what was too weak answers.
func strongest(c *inject.Considered) (best float64, ok bool) {
	for i := range c.Pieces {
		if p := &c.Pieces[i]; p.Weighed && p.Verdict == inject.Weak {
			best, ok = max(best, p.Strength), true
		}
	}
	return best, ok
}
