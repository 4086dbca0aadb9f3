package health

import (
	"cmp"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Judge adds every fault, because one does not explain another.
func (m *MemoryStatus) Judge(p *Probe, q *capture.QueueStatus, files []*database.Fault) {
	if p.At.IsZero() {
		m.State, m.Why = StateUnknown, "the memory has not been checked yet"
	} else {
		m.Checked = &p.At
	}
	switch {
	case sqlite.IsFault(p.Health): // one of files
	case p.Health != nil:
		m.Fail(FaultUnreachable, p.Since, p.Health.Error(), cmp.Or(graphiti.Remedy(p.Health), "run graphiti-proxy test-connection")+"; requests are forwarded, and turns wait in the queue")
	case p.Search != nil:
		d := graphiti.Diagnose(p.Search)
		m.Fail(FaultSearch, p.Since, "the memory is up, but a search fails: "+p.Search.Error()+worded(d),
			cmp.Or(d.Remedy(), graphiti.Remedy(p.Search), "run graphiti-proxy test-connection; check Graphiti's database and embedding model"))
	}
	if q.Stalled != nil {
		m.Fail(FaultStalled, *q.Stalled, fmt.Sprintf("the memory accepts turns and has stored none since %s; %d wait in the queue",
			q.Stalled.Format(time.RFC3339), q.Pending)+worded(q.Diagnosis), q.Diagnosis.Remedy()+"; done already? run graphiti-proxy queue retry")
	}
	if q.Failing != nil && m.State != StateTrouble { // otherwise that explains it
		m.Fail(FaultDelivery, *q.Failing, "delivery fails: "+q.LastError,
			cmp.Or(q.Remedy, "run graphiti-proxy test-connection --smoke")+"; turns wait in the queue")
	}
	if q.Unkept != nil {
		m.Fail(FaultDisk, *q.Unkept, fmt.Sprintf("turns have not been stored on disk since %s: %s; %d wait in RAM, %d are lost",
			q.Unkept.Format(time.RFC3339), q.UnkeptError, q.InMemory, q.NotKept), q.UnkeptRemedy)
	}
	for _, t := range files {
		switch {
		case t.Kind == database.Away:
			m.Fail(FaultShared, t.Since, fmt.Sprintf("Postgres has been unusable since %s: %s", t.Since.Format(time.RFC3339), t.Err),
				t.Remedy+"; requests are forwarded without new memories, and turns wait in data_dir")
		case q.Unkept == nil || t.What() != q.UnkeptError:
			m.Fail(FaultDisk, t.Since, t.What(), t.Remedy)
		}
	}
}

// worded returns a diagnosis as a clause.
func worded(d graphiti.Diagnosis) string {
	if d == graphiti.NoDiagnosis {
		return ""
	}
	return ": " + d.Says() + " (" + string(d) + ")"
}

// WithoutFiles turns the memory off because files of data_dir are unusable.
func (m *MemoryStatus) WithoutFiles(files []*database.Fault) {
	for _, t := range files {
		m.TurnOff(FaultState, t.Since, t.What(), t.Remedy)
	}
	m.Why += fmt.Sprintf("; recall and storage are off: %d turns are lost so far, %d wait in RAM", m.NotKept, m.InMemory)
}

// Moved turns the memory off because the configuration now names another endpoint.
func (m *MemoryStatus) Moved(endpoint string) {
	m.TurnOff(FaultConsent, time.Time{}, "memory.endpoint has changed to "+endpoint+", and consent applies only to the previous endpoint",
		"set memory.consent to the new address, and restart the proxy")
}

// WithoutConsent turns the memory off for lack of consent. open reports that consent
// takes effect without a restart; other is another endpoint with consent, or "".
func (m *MemoryStatus) WithoutConsent(open bool, endpoint, other string) {
	remedy := "set memory.consent to " + endpoint
	if other != "" {
		remedy = "memory.consent is for " + other + ": set it to " + endpoint
	}
	if !open {
		remedy += ", and restart the proxy"
	}
	m.TurnOff(FaultConsent, time.Time{}, "memory.consent does not allow sending conversations to this endpoint", remedy)
}
