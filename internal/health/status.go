// Package health owns the proxy's report of its state: the faults, their start and the
// remedy. It checks the memory in the background, so that status requests neither wait
// for it nor add load.
package health

import (
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/distil"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Status is everything that a running proxy reports about itself.
type Status struct {
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Ready     bool      `json:"ready"`
	Listen    string    `json:"listen"`
	Inspector string    `json:"inspector,omitempty"` // its address for browsers on this machine, or off
	TLS       bool      `json:"tls"`                 // the client listener uses TLS
	OpenAI    string    `json:"upstream_openai"`
	Anthropic string    `json:"upstream_anthropic"`
	Identity  string    `json:"identity_mode"`
	Owner     string    `json:"owner,omitempty"` // in identity.mode single

	// Upstreams are the addresses of all upstreams, by name, including the two above.
	Upstreams map[string]string `json:"upstreams"`

	DataDir string `json:"data_dir"`

	Memory MemoryStatus        `json:"memory"`
	Queue  capture.QueueStatus `json:"queue"`

	Bill string `json:"bill,omitempty"` // memory's share of the bill of seven days, in words

	// Blocked lists the groups without recall and delivery, because a forget is not
	// yet verified.
	Blocked []string `json:"blocked_groups,omitempty"`

	// Unconfirmed lists the registered people who get no memory, because their identity
	// is in doubt.
	Unconfirmed []Unconfirmed `json:"unconfirmed_people,omitempty"`

	// Messages counts the messages of the role user since the start, by fate. The messages
	// that are held now are in Queue.
	Messages map[graphiti.FateName]int64 `json:"messages,omitempty"`

	// Clients lists the clients with a rule that may be outdated.
	Clients []graphiti.ClientSigns `json:"clients,omitempty"`

	// Apart lists the directories with a project's remote but a separate memory.
	Apart []graphiti.Apart `json:"kept_apart,omitempty"`

	// PendingLines counts the standing lines that wait for the owner's confirmation, in
	// identity.mode single.
	PendingLines int `json:"pending_lines,omitempty"`

	// Waiting lists the settings that have changed in the file but need a
	// restart.
	Waiting []string `json:"need_a_restart,omitempty"`
}

// Unconfirmed is a registered person who gets no memory.
type Unconfirmed struct {
	ID     string `json:"id"`
	Why    string `json:"why"`
	Remedy string `json:"to_do"`
}

// MemoryStatus is the state of the memory, in words.
type MemoryStatus struct {
	Backend string      `json:"backend"` // embedded, graphiti or off
	Where   string      `json:"where,omitempty"`
	State   MemoryState `json:"state"`
	Why     string      `json:"why,omitempty"`    // problem
	Remedy  string      `json:"remedy,omitempty"` // action for the operator
	Recall  bool        `json:"recall"`
	Ingest  bool        `json:"ingest"`

	// Faults are the problems as codes of a closed list, Since is the start of the
	// first one, and Checked is the time of the last check.
	Faults  []FaultCode `json:"faults,omitempty"`
	Since   *time.Time  `json:"since,omitempty"`
	Checked *time.Time  `json:"checked,omitempty"`

	// Outcomes counts the requests since the start by memory outcome: the status in the
	// X-Graphiti-Memory header, with its reason.
	Outcomes map[string]int64 `json:"outcomes,omitempty"`

	// Distil reports on the model that distils facts; nil without one.
	Distil *distil.Report `json:"distil,omitempty"`

	// NotKept counts the turns lost since the start because data_dir is unusable, and
	// InMemory the turns that wait for it in RAM and are lost with the process.
	NotKept  int `json:"turns_not_kept,omitempty"`
	InMemory int `json:"turns_in_memory,omitempty"`
}

// MemoryState is the state of the memory as a code.
type MemoryState string

// The states of a memory.
const (
	StateWorking MemoryState = "working"
	StateTrouble MemoryState = "trouble"
	StateOff     MemoryState = "off"
	StateUnknown MemoryState = "unknown" // before the first check
)

// FaultCode is a problem as a code.
type FaultCode string

// The faults of a memory, and the reasons why it is off.
const (
	FaultUnreachable FaultCode = "unreachable"
	FaultSearch      FaultCode = "search"
	FaultStalled     FaultCode = "stalled"
	FaultDelivery    FaultCode = "delivery"
	FaultSetting     FaultCode = "setting"
	FaultConsent     FaultCode = "consent"
	FaultState       FaultCode = "state"
	FaultDisk        FaultCode = "disk"
	FaultShared      FaultCode = "shared_state"
)

// words describes the faults without details, because the texts are public.
var words = map[FaultCode]string{
	FaultUnreachable: "the memory does not answer",
	FaultSearch:      "the memory is up, but a search fails",
	FaultStalled:     "the memory accepts turns and stores none",
	FaultDelivery:    "delivery fails",
	FaultSetting:     "memory.backend is off",
	FaultConsent:     "memory.consent does not allow sending conversations to the memory",
	FaultShared:      "Postgres is unusable",
	FaultState:       "a file of data_dir is unusable: recall and storage are off",
	FaultDisk:        "data_dir is not writable: turns are not on disk",
}

// Gauges returns the results of the last check of a memory service, by the name of their
// metric. Unknown results are absent: before the first check, without consent, and for
// searches while the service does not answer.
func (m *MemoryStatus) Gauges() map[string]bool {
	if m.Checked == nil || m.Backend == "embedded" {
		return nil
	}
	healthy := !slices.Contains(m.Faults, FaultUnreachable)
	g := map[string]bool{"graphiti_healthy": healthy}
	if healthy {
		g["search_working"] = !slices.Contains(m.Faults, FaultSearch)
	}
	return g
}

// TurnOff marks the memory as off, with the reason. since may be zero.
func (m *MemoryStatus) TurnOff(f FaultCode, since time.Time, why, remedy string) {
	m.Fail(f, since, why, remedy)
	m.State = StateOff
}

// Fail adds a fault. since may be zero.
func (m *MemoryStatus) Fail(f FaultCode, since time.Time, why, remedy string) {
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

// Public returns the part to show without the token: no address, no path, and no text of
// the memory.
func (m MemoryStatus) Public() MemoryStatus {
	m.Where, m.Why, m.Remedy = "", "", ""
	for _, f := range m.Faults {
		m.Why = joined(m.Why, words[f])
	}
	if m.Why != "" {
		m.Remedy = "see graphiti-proxy status"
	}
	return m
}

// Off returns the reason why the memory is off, and the remedy.
func (m MemoryStatus) Off() string {
	if m.Why == "" {
		return "the memory is off"
	}
	return joined("the memory is off: "+m.Why, m.Remedy)
}
