package graphiti

import (
	"cmp"
	"time"
)

// FateName names what happens to a message of the role user.
type FateName string

// The fates of a message. FateOpen and FateHeld end with another fate.
const (
	FateNone   FateName = ""       // the request has no new message
	FateStored FateName = "stored" // its turn is stored
	FateHeld   FateName = "held"   // it is on disk until its session shows whether it is a turn
	FateOpen   FateName = "open"   // its turn has no answer yet
	FateClient FateName = "client" // a program wrote it; the reason is the rule
	FateAbout  FateName = "about"  // it is a request about a turn, or to the memory
	FateNobody FateName = "nobody" // the caller is unknown
	FateOff    FateName = "off"    // memory is off for it
	FatePlace  FateName = "place"  // the project is unknown
	FateLost   FateName = "lost"
)

// Fates is the closed list of fates, for metrics and tests.
var Fates = []FateName{FateStored, FateHeld, FateOpen, FateClient, FateAbout, FateNobody, FateOff, FatePlace, FateLost}

// Fate is what happens to a message of the role user. A message has one fate at a time.
type Fate struct {
	Name    FateName
	Reason  string    // "" only for FateNone, FateStored and FateOpen
	Until   time.Time // end of a hold, or zero
	Earlier string    // number of the request's other new messages for each of their fates, or ""
}

// Next returns the fate after f. Either may be of the newest message or of the earlier ones only.
func (f Fate) Next(next Fate) Fate {
	if next.Name == FateNone {
		next.Name, next.Reason, next.Until = f.Name, f.Reason, f.Until
	}
	next.Earlier = cmp.Or(next.Earlier, f.Earlier)
	return next
}

// The reasons of lost messages.
const (
	LostCutOff   = "cut_off"   // the upstream or the client ended the answer
	LostFailed   = "error"     // the provider reported an error in the answer
	LostFiltered = "filtered"  // the provider withheld the answer
	LostNoEnd    = "no_end"    // the answer is complete, but has an unknown form, or no end
	LostEncoding = "encoding"  // the proxy cannot decode the body of the request or of the answer
	LostUnread   = "unread"    // the answer was too large, or too many came at once
	LostStore    = "store"     // the turn could not be written
	LostLate     = "late"      // the project's directory could not be read in time
	LostBrief    = "abandoned" // the turn's tool rounds stopped, and its words are too few to store
	LostTooLarge = "too_large" // the request exceeds a limit
	LostBusy     = "busy"      // other requests used up the budget for inspection
	LostPlan     = "plan"      // the plan failed
)

// LostReasons is the closed list of reasons, for metrics and tests.
var LostReasons = []string{LostCutOff, LostFailed, LostFiltered, LostNoEnd, LostEncoding, LostUnread, LostStore, LostLate, LostBrief, LostTooLarge, LostBusy, LostPlan}

// The reasons of other fates, besides the reasons of the X-Graphiti-Memory header.
const (
	HeldDoubt      = "doubt"    // the request may be about another turn
	HeldTitle      = "title"    // the answer may be a title of the turn before
	HeldTwin       = "check"    // a program may have asked about the message of another turn
	HeldHistory    = "history"  // it is from a history that was not seen before; also of FateClient, when it ends so
	AboutTwin      = "twin"     // a turn quotes the message at the same time
	AboutDropped   = "dropped"  // its session continued without it
	AboutMemory    = "forget"   // it only asks the memory to forget
	OffBackend     = "backend"  // memory.backend is off
	OffIgnored     = "ignored"  // the project is excluded from memory
	OffIngest      = "ingest"   // ingest.enabled is false, or no scope stores it
	OffOptOut      = "opt_out"  // the person, the client or a setting for the request
	OffQuota       = "quota"    // a quota is reached
	AboutReplaced  = "replaced" // the conversation continues with another message in its place
	ClientRepeats  = "repeats"  // a program repeats the message within a conversation
	ClientSubagent = "subagent" // a model wrote it, the task of a subagent
	ClientAtOnce   = "at_once"  // it followed an answer at once, in a session in which a person types
)
