package proxy

import (
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// refusal says why a request goes on without memory. The client gets no error.
type refusal struct {
	inject.Outcome
	why string // for people; empty: the reason says it
}

func off(reason inject.Reason, why string) *refusal {
	return &refusal{inject.Outcome{Status: inject.StatusOff, Reason: reason}, why}
}

func skipped(reason inject.Reason) *refusal {
	return &refusal{inject.Outcome{Status: inject.StatusSkipped, Reason: reason}, ""}
}

// The refusals, in the order in which they are decided. That memory is off comes before
// all of them, with a reason of its own (Off). The reasons of a request that is not
// refused are found after them, by mode in plan.go and by inject.Memory.Plan.
var (
	// By the path, before anything else (decide).
	notServed = skipped(inject.ReasonAPI)

	// By the head, before the body is read (barred).
	noCredential = off(inject.ReasonNobody, nobody)
	foreign      = off(inject.ReasonUntrusted, "a page of the web may have sent it")
	skippedPath  = off(inject.ReasonOptOut, "")

	// By the body (parse).
	busy       = skipped(inject.ReasonBusy)
	tooLarge   = skipped(inject.ReasonTooLarge)
	encoded    = skipped(inject.ReasonEncoding)
	late       = &refusal{Outcome: inject.Outcome{Status: inject.StatusTimeout, Reason: inject.ReasonTooLarge}}
	notThatAPI = skipped(inject.ReasonNone)

	// By who speaks (caller).
	contradicts = off(inject.ReasonUntrusted, "a header that says whose memory it is stands twice, with different values, or its signature is not valid")
	doubted     = off(inject.ReasonUntrusted, "the operator has not confirmed who this person of identity.users_file is")
	noCaller    = off(inject.ReasonNobody, nobody)

	// By what was said (decide). Behind it session refuses, as late, what took too long.
	noPerson = skipped(inject.ReasonNoUserMessage)
)

const lateDirectory = "its directory could not be read in time; the turn is kept"

const nobody = "no person and no actor is known"

// stopped is why a body was not read to its end.
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
