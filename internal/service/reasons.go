package service

import (
	"fmt"
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// reasons say for people why a turn has no block. The list is that of inject.Reasons.
var reasons = map[inject.Reason]string{
	inject.ReasonNone:          "nothing was found in time, or the memory did not answer",
	inject.ReasonTitle:         "the client asked for a title, and no person asked anything",
	inject.ReasonSummary:       "the client asked for a summary of the conversation, and no person asked anything",
	inject.ReasonProbe:         "the client only tried whether the model answers",
	inject.ReasonMachine:       "a program asked, and no person",
	inject.ReasonSubagent:      "an agent asked another one, and no person did",
	inject.ReasonEncoding:      "the request is written in a way that the proxy does not read",
	inject.ReasonTooLarge:      "the request is longer than the proxy reads",
	inject.ReasonNoUserMessage: "the request has no message of a person",
	inject.ReasonNotPersisted:  "the decision could not be stored, and a block that is not stored could not be repeated",
	inject.ReasonConsent:       "the configuration has no consent to send conversations to the memory",
	inject.ReasonOptOut:        "memory was switched off by the request or by a setting",
	inject.ReasonUntrusted:     "it was not certain who asked, or the project is none of workspace.trusted",
	inject.ReasonNobody:        "nobody was named whose memory could be searched",
	inject.ReasonPlace:         "it was not known in which project the client worked",
	inject.ReasonForgotten:     "an earlier block of the conversation was emptied, because what it showed was forgotten; the conversation gets no more blocks",
	inject.ReasonAPI:           "the model API of the request has no memory",
	inject.ReasonRefused:       "the provider refused the request with a block, and got it without",
	inject.ReasonState:         "a file of the data directory could not be used",
	inject.ReasonBusy:          "so many requests were read at the same time that this one was not",
	inject.ReasonNothing:       "nothing was found",
	inject.ReasonWeak:          "nothing that was found is worth showing for this question",
	inject.ReasonVisible:       "what was found stands in the conversation already",
	inject.ReasonRoutine:       "nothing was asked that could be looked up",
}

// why says for people why a decision shows no block, or no block any more; empty: it shows
// one.
func why(d *inject.Decision, c *inject.Considered) string {
	switch {
	case d.Block != "":
		return ""
	case d.Facts > 0:
		return "the block was emptied, because something of the memory that it came from was forgotten or corrected"
	case inject.Reason(d.Reason) == inject.ReasonWeak:
		if best, ok := strongest(c); ok && best < c.MinScore {
			return fmt.Sprintf("nothing that was found is about this question: the strongest has %.2f, %.2f is needed", math.Floor(100*best)/100, c.MinScore) // 0.149 is less than 0.15
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

// InWords returns the reason of a request without a block in words.
func InWords(reason string) string {
	if says, ok := reasons[inject.Reason(reason)]; ok {
		return says
	}
	return reason
}
