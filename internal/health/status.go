// Package health owns how a proxy reports its state: what does not work, since when,
// and the remedy. It checks the memory from time to time, so that whoever wants to
// know neither waits for it nor causes it work.
//
// It must not know about configuration, HTTP, or how anything is stored. Of our
// packages it imports those whose faults it describes, and internal/terminal.
package health

import (
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Status is everything that a running proxy reports about itself.
type Status struct {
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Ready     bool      `json:"ready"`
	Listen    string    `json:"listen"`
	TLS       bool      `json:"tls"` // whether clients speak it
	OpenAI    string    `json:"upstream_openai"`
	Anthropic string    `json:"upstream_anthropic"`
	Identity  string    `json:"identity_mode"`
	Owner     string    `json:"owner,omitempty"` // in identity.mode single

	// Upstreams are the addresses of all upstreams, by name, including the two above.
	Upstreams map[string]string `json:"upstreams"`

	DataDir string `json:"data_dir"`

	Memory Memory              `json:"memory"`
	Queue  capture.QueueStatus `json:"queue"`

	// Blocked are the groups that are neither recalled nor delivered to, because it is
	// not proven yet that the memory has forgotten them.
	Blocked []string `json:"blocked_groups,omitempty"`

	// Unconfirmed are the registered people who get no memory, because it is not
	// certain whose it is.
	Unconfirmed []Unconfirmed `json:"unconfirmed_people,omitempty"`

	// Clients are the clients for which a rule may no longer match.
	Clients []Client `json:"clients,omitempty"`

	// Apart are the directories that have the remote of a project, but a memory of
	// their own.
	Apart []Apart `json:"kept_apart,omitempty"`

	// PendingLines counts the standing lines that wait for the owner's confirmation, in
	// identity.mode single.
	PendingLines int `json:"pending_lines,omitempty"`

	// Waiting are the settings that have changed in the file, but count only after a
	// restart.
	Waiting []string `json:"need_a_restart,omitempty"`
}

// Client counts, since the start, what was seen of a version of a client for which a
// rule may no longer match.
type Client struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	UnknownTags int64  `json:"unknown_tags,omitempty"` // turns whose kept words begin with a tag that no rule knows
	NoPlace     int64  `json:"no_place,omitempty"`     // requests whose place is stated in an unknown form
	NoDirectory int64  `json:"no_directory,omitempty"` // requests with tools that work on files, and no directory
	NotHere     int64  `json:"not_here,omitempty"`     // requests from a directory that is not on this machine
	NoWords     int64  `json:"no_words,omitempty"`     // requests, if all of them had no words of a person
	LostAnswers int64  `json:"lost_answers,omitempty"` // answers that could not be read or stored, if more than a few
}

// Apart is a directory that has the remote of a project, but a memory of its own.
type Apart struct {
	Directory string `json:"directory"`
	Workspace string `json:"workspace"` // the project's key
	Remedy    string `json:"to_do"`
}

// Unconfirmed is a registered person who gets no memory.
type Unconfirmed struct {
	ID     string `json:"id"`
	Why    string `json:"why"`
	Remedy string `json:"to_do"`
}

// Memory is the state of the memory, in words.
type Memory struct {
	Backend string `json:"backend"` // embedded, graphiti or off
	Where   string `json:"where,omitempty"`
	State   State  `json:"state"`
	Why     string `json:"why,omitempty"`    // what does not work
	Remedy  string `json:"remedy,omitempty"` // what to do about it
	Recall  bool   `json:"recall"`

	// Faults are the same in words of a closed list, Since is when the first of them
	// began, and Checked is when the memory was checked last.
	Faults  []Fault    `json:"faults,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Checked *time.Time `json:"checked,omitempty"`

	// For which endpoint consent was given, and since when it counts.
	ConsentFor   string     `json:"consent_for,omitempty"`
	ConsentSince *time.Time `json:"consent_since,omitempty"`
	Ingest       bool       `json:"ingest"`

	// Emptied counts the messages whose block "memory forget" has emptied: their
	// conversations get no more blocks.
	Emptied int `json:"emptied_blocks,omitempty"`

	// Searches says how long searches take, when the memory is a service and has
	// answered some.
	Searches *graphiti.SearchTimes `json:"searches,omitempty"`

	// Outcomes counts the requests since the start by what memory did: the status of the
	// X-Graphiti-Memory header, with its reason.
	Outcomes map[string]int64 `json:"outcomes,omitempty"`

	// NotKept counts the turns since the start that are lost because data_dir cannot be
	// used, and InMemory those that wait for it in RAM, and are lost with the process.
	NotKept  int `json:"turns_not_kept,omitempty"`
	InMemory int `json:"turns_in_memory,omitempty"`
}

// State is the state of the memory, in one word.
type State string

// The states of a memory.
const (
	StateWorking State = "working"
	StateTrouble State = "trouble"
	StateOff     State = "off"
	StateUnknown State = "unknown" // it has not been checked yet
)

// Fault says in one word what does not work.
type Fault string

// The faults of a memory, and the reasons why it is off.
const (
	FaultUnreachable Fault = "unreachable"
	FaultSearch      Fault = "search"
	FaultStalled     Fault = "stalled"
	FaultUnshown     Fault = "nothing_shown"
	FaultShared      Fault = "shared_state"
	FaultDelivery    Fault = "delivery"
	FaultSetting     Fault = "setting"
	FaultConsent     Fault = "consent"
	FaultState       Fault = "state"
	FaultDisk        Fault = "disk"
)

// words are the faults in words without details: everybody may read them.
var words = map[Fault]string{
	FaultUnreachable: "the memory does not answer",
	FaultSearch:      "the memory is up, but a search fails",
	FaultStalled:     "the memory accepts turns and stores none",
	FaultUnshown:     "the memory accepts turns and shows none of them",
	FaultShared:      "Redis cannot be used",
	FaultDelivery:    "turns cannot be delivered",
	FaultSetting:     "memory.backend is off",
	FaultConsent:     "there is no consent to send conversations to the memory",
	FaultState:       "a file of data_dir cannot be used: nothing is recalled or kept",
	FaultDisk:        "data_dir cannot be written: turns are not on disk",
}

// TurnOff notes that there is no memory, and why; since may be zero.
func (m *Memory) TurnOff(f Fault, since time.Time, why, remedy string) {
	m.Fail(f, since, why, remedy)
	m.State = StateOff
}

// Fail adds something that does not work; since may be zero.
func (m *Memory) Fail(f Fault, since time.Time, why, remedy string) {
	m.State = StateTrouble
	if !slices.Contains(m.Faults, f) {
		m.Faults = append(m.Faults, f)
	}
	m.Why, m.Remedy = joined(m.Why, why), joined(m.Remedy, remedy)
	if !since.IsZero() && (m.Since == nil || since.Before(*m.Since)) {
		m.Since = &since
	}
}

func joined(a, b string) string {
	if a == "" || a == b {
		return b
	}
	if b == "" || strings.HasSuffix(a, "; "+b) {
		return a
	}
	return a + "; " + b
}

// Public returns the part that may be shown without the token: no address, no path, and
// no text of the memory.
func (m Memory) Public() Memory {
	m.Where, m.ConsentFor, m.Why, m.Remedy = "", "", "", ""
	for _, f := range m.Faults {
		m.Why = joined(m.Why, words[f])
	}
	if m.Why != "" {
		m.Remedy = "see graphiti-proxy status"
	}
	return m
}

// Off returns why there is no memory, and the remedy.
func (m Memory) Off() string {
	if m.Why == "" {
		return "the memory is off"
	}
	return joined("the memory is off: "+m.Why, m.Remedy)
}
