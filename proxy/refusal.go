package proxy

import (
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// refusal is the outcome of a request that is forwarded without memory. The client gets
// no error.
type refusal struct {
	inject.Outcome
	why string // the reason in words; empty if Reason is enough
}

func off(reason inject.Reason, why string) *refusal {
	return &refusal{inject.Outcome{Status: inject.StatusOff, Reason: reason}, why}
}

func skipped(reason inject.Reason) *refusal {
	return &refusal{inject.Outcome{Status: inject.StatusSkipped, Reason: reason}, ""}
}

// The refusals, in the order of their steps. The barred step first refuses every request
// if memory is off, with the reason in Off. The reasons of a request that is not refused
// come later, from mode in plan.go and from inject.Planner.Plan.
var (
	// By the path, before all other steps (decide).
	notServed = skipped(inject.ReasonAPI)

	// By the head, before the body is read (barred).
	noCredential = off(inject.ReasonNobody, nobody)
	foreign      = off(inject.ReasonUntrusted, "a web page may have sent it")
	skippedPath  = off(inject.ReasonOptOut, "")

	// By the body (parse).
	busy       = skipped(inject.ReasonBusy)
	tooLarge   = skipped(inject.ReasonTooLarge)
	encoded    = skipped(inject.ReasonEncoding)
	late       = &refusal{Outcome: inject.Outcome{Status: inject.StatusTimeout, Reason: inject.ReasonTooLarge}}
	notThatAPI = &refusal{skipped(inject.ReasonEncoding).Outcome, "the body is not understood"}

	// By the caller (caller).
	contradicts = off(inject.ReasonUntrusted, "a header that names the person occurs twice, with different values, or its signature is invalid")
	doubted     = off(inject.ReasonUntrusted, "the operator has not confirmed this person of identity.users_file")
	noCaller    = off(inject.ReasonNobody, nobody)

	// By the messages (where, which may refuse a request as late too).
	noPerson = skipped(inject.ReasonNoUserMessage)
)

const nobody = "no person and no actor is known"

// stopped returns the refusal of a body that was not read to its end.
func stopped(c *dialect.Conversation) *refusal {
	switch c.Stopped() {
	case dialect.StoppedTooLarge:
		return tooLarge
	case dialect.StoppedBusy:
		return busy
	case dialect.StoppedLate:
		return late
	case dialect.NotStopped:
	}
	return notThatAPI
}
