package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// mayAsk reports whether the memory that the proxy runs with may be used: it
// needs no consent, or has it.
func (a *app) mayAsk() bool {
	read := a.live.Load()
	return a.memory != nil && (!a.cfg.RemoteMemory() || read.Memory.Consent && !moved(a.cfg, read))
}

// status tells how the proxy is, in words: of the memory as it was when it was
// asked last, or as it is where fresh is set. What it says of the memory's kind
// and place is what the proxy runs with, whatever the file says by now.
func (a *app) status(ctx context.Context, fresh bool) admin.Status {
	read := a.live.Load()
	s := admin.Status{
		Version: version(), Started: a.started, Ready: true,
		TLS: a.cfg.TLSFor("client"), OpenAI: read.Upstream.OpenAI, Anthropic: read.Upstream.Anthropic, Upstreams: read.Upstreams(),
		Identity: a.cfg.Identity.Mode, DataDir: a.cfg.DataDir,
		Memory: admin.Memory{
			Backend: a.cfg.Memory.Backend, Where: withoutUser(a.cfg.Memory.Endpoint), State: admin.StateWorking,
			Recall: read.Recall.Enabled, Ingest: read.Ingest.Enabled,
		},
		Waiting: a.waiting(),
	}
	if a.proxy != nil {
		s.Listen = a.proxy.Addr().String()
	}
	m := &s.Memory
	if c := a.consent.Load(); c != nil {
		m.ConsentFor, m.ConsentSince = c.Endpoint, &c.Since
	}
	if m.Backend == "embedded" {
		m.Where = a.cfg.DataDir
	}
	if a.service != nil {
		s.Blocked = a.parts.state.Generations.Blocked()
	}
	off := func(f admin.Fault, why, remedy string) {
		m.Fail(f, time.Time{}, why, remedy)
		m.State = admin.StateOff
	}
	s.Queue = a.queue()
	m.NotKept, m.InMemory = s.Queue.NotKept, s.Queue.InMemory
	troubles := a.troubles()
	switch {
	case slices.ContainsFunc(troubles, (*sqlite.Trouble).Lasting):
		for _, t := range troubles {
			off(admin.FaultState, t.What(), t.Remedy)
			m.Sooner(t.Since)
		}
		m.Why += fmt.Sprintf("; nothing is recalled or kept: %d turns are lost so far, %d wait in memory", m.NotKept, m.InMemory)
	case m.Backend == "off":
		m.Where = ""
		off(admin.FaultSetting, "memory.backend is off", "")
	case a.memory != nil && moved(a.cfg, read):
		off(admin.FaultConsent, "memory.endpoint has changed to "+withoutUser(read.Memory.Endpoint)+", and consent counts for the endpoint that it was given for",
			"start the proxy again with memory.consent: true beside the new endpoint")
	case !a.mayAsk():
		remedy := "set memory.consent to true"
		if a.memory == nil {
			remedy += ", and start the proxy again"
		}
		if other := read.ConsentFor(); other != "" {
			remedy = "consent stands beside " + withoutUser(other) + " in the file: write the endpoint and memory.consent: true together"
		}
		off(admin.FaultConsent, "no consent was given to send conversations to this endpoint", remedy)
	default:
		if fresh {
			a.prober.fresh(ctx)
		}
		s.Queue = a.queue()
		faults(m, a.prober.last.Load(), &s.Queue)
		diskFaults(m, troubles, &s.Queue)
	}
	return s
}

// worded is a diagnosis behind other words.
func worded(d graphiti.Diagnosis) string {
	if d == graphiti.NoDiagnosis {
		return ""
	}
	return ": " + d.Says() + " (" + string(d) + ")"
}

// diskFaults says what keeps data_dir from being written.
func diskFaults(m *admin.Memory, troubles []*sqlite.Trouble, q *capture.QueueStatus) {
	if q.Unkept != nil {
		m.Fail(admin.FaultDisk, *q.Unkept, fmt.Sprintf("turns are not kept on disk since %s: %s; %d wait in memory, %d are lost",
			q.Unkept.Format(time.RFC3339), q.UnkeptError, q.InMemory, q.NotKept), q.UnkeptRemedy)
	}
	for _, t := range troubles {
		if q.Unkept == nil || t.What() != q.UnkeptError {
			m.Fail(admin.FaultDisk, t.Since, t.What(), t.Remedy)
		}
	}
}

// faults says what does not work: all of it, because one fault does not mend
// another.
func faults(m *admin.Memory, p *probed, q *capture.QueueStatus) {
	m.Emptied = p.emptied
	if p.at.IsZero() {
		m.State, m.Why = admin.StateUnknown, "the memory has not been asked yet"
	} else {
		m.Checked = &p.at
	}
	switch {
	case p.health != nil:
		m.Fail(admin.FaultUnreachable, p.since, p.health.Error(), cmp.Or(graphiti.Remedy(p.health), "run graphiti-proxy test-connection")+"; chats go on, and turns wait in the spool")
	case p.search != nil:
		d := graphiti.Diagnose(p.search)
		m.Fail(admin.FaultSearch, p.since, "the memory is up and a search fails: "+p.search.Error()+worded(d),
			cmp.Or(d.Remedy(), graphiti.Remedy(p.search), "run graphiti-proxy test-connection; look at Graphiti's database and embedding model"))
	}
	if q.Stalled != nil {
		m.Fail(admin.FaultStalled, *q.Stalled, fmt.Sprintf("the memory accepts turns and has kept none since %s; %d wait in the spool, none is lost",
			q.Stalled.Format(time.RFC3339), q.Pending)+worded(q.Diagnosis), q.Diagnosis.Remedy())
	}
	if q.Unlisted != nil && q.Diagnosis == graphiti.Unshown {
		m.Fail(admin.FaultUnshown, *q.Unlisted, q.Diagnosis.Says(), q.Diagnosis.Remedy())
	}
	if d := q.SharedDown; d != nil {
		m.Fail(admin.FaultShared, *d, fmt.Sprintf("redis cannot be used since %s: %s", d.Format(time.RFC3339), q.SharedError),
			"start Redis, give it room, or correct state.redis_url; chats go on without new memories, and turns wait in data_dir")
	}
	if q.Failing != nil && m.State != admin.StateTrouble { // else it follows from that
		m.Fail(admin.FaultDelivery, *q.Failing, "turns cannot be delivered: "+q.LastError,
			cmp.Or(q.Remedy, "run graphiti-proxy test-connection --smoke")+"; turns wait in the spool")
	}
}
