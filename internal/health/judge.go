package health

import (
	"cmp"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Judge adds every fault, because one does not explain another.
func (m *Memory) Judge(p *Probe, q *capture.QueueStatus, files []*sqlite.Fault) {
	m.Emptied = p.Emptied
	if p.At.IsZero() {
		m.State, m.Why = StateUnknown, "the memory has not been checked yet"
	} else {
		m.Checked = &p.At
	}
	switch {
	case p.Health != nil:
		m.Fail(FaultUnreachable, p.Since, p.Health.Error(), cmp.Or(graphiti.Remedy(p.Health), "run graphiti-proxy test-connection")+"; requests are forwarded, and turns wait in the queue")
	case p.Search != nil:
		d := graphiti.Diagnose(p.Search)
		m.Fail(FaultSearch, p.Since, "the memory is up, but a search fails: "+p.Search.Error()+worded(d),
			cmp.Or(d.Remedy(), graphiti.Remedy(p.Search), "run graphiti-proxy test-connection; look at Graphiti's database and embedding model"))
	}
	if q.Stalled != nil {
		m.Fail(FaultStalled, *q.Stalled, fmt.Sprintf("the memory accepts turns and has stored none since %s; %d wait in the queue, none is lost",
			q.Stalled.Format(time.RFC3339), q.Pending)+worded(q.Diagnosis), q.Diagnosis.Remedy()+nextTest(q.NextTest))
	}
	if q.Unlisted != nil && q.Diagnosis == graphiti.Unshown {
		m.Fail(FaultUnshown, *q.Unlisted, q.Diagnosis.Says(), q.Diagnosis.Remedy())
	}
	if d := q.SharedDown; d != nil {
		m.Fail(FaultShared, *d, fmt.Sprintf("redis cannot be used since %s: %s", d.Format(time.RFC3339), q.SharedError),
			"start Redis, give it memory, or correct state.redis_url; requests are forwarded without new memories, and turns wait in data_dir")
	}
	if q.Failing != nil && m.State != StateTrouble { // otherwise that explains it
		m.Fail(FaultDelivery, *q.Failing, "turns cannot be delivered: "+q.LastError,
			cmp.Or(q.Remedy, "run graphiti-proxy test-connection --smoke")+"; turns wait in the queue")
	}
	if q.Unkept != nil {
		m.Fail(FaultDisk, *q.Unkept, fmt.Sprintf("turns are not kept on disk since %s: %s; %d wait in RAM, %d are lost",
			q.Unkept.Format(time.RFC3339), q.UnkeptError, q.InMemory, q.NotKept), q.UnkeptRemedy)
	}
	for _, t := range files {
		if q.Unkept == nil || t.What() != q.UnkeptError {
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
func (m *Memory) WithoutFiles(files []*sqlite.Fault) {
	for _, t := range files {
		m.TurnOff(FaultState, t.Since, t.What(), t.Remedy)
	}
	m.Why += fmt.Sprintf("; nothing is recalled or kept: %d turns are lost so far, %d wait in RAM", m.NotKept, m.InMemory)
}

// Moved turns the memory off because the configuration now names another endpoint.
func (m *Memory) Moved(endpoint string) {
	m.TurnOff(FaultConsent, time.Time{}, "memory.endpoint has changed to "+endpoint+", and consent counts only for the endpoint that it was given for",
		"write memory.consent: true beside the new endpoint, and restart the proxy")
}

// WithoutConsent turns the memory off for lack of consent. open reports that consent
// takes effect without a restart; other is another endpoint with consent, or "".
func (m *Memory) WithoutConsent(open bool, other string) {
	remedy := "set memory.consent to true"
	if !open {
		remedy += ", and restart the proxy"
	}
	if other != "" {
		remedy = "consent stands beside " + other + " in the file: write the endpoint and memory.consent: true together"
	}
	m.TurnOff(FaultConsent, time.Time{}, "there is no consent to send conversations to this endpoint", remedy)
}

// nextTest returns when delivery tests a memory that stores nothing, so that an operator who
// has acted on the remedy waits instead of acting again.
func nextTest(at *time.Time) string {
	if at == nil {
		return ""
	}
	return fmt.Sprintf("; done already? the next test is in %d s, or at once with graphiti-proxy queue retry", max(0, int(time.Until(*at).Seconds())))
}
