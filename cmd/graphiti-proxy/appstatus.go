package main

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
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
func (a *app) status(ctx context.Context, fresh bool) health.Status {
	read := a.live.Load()
	s := health.Status{
		Version: telemetry.Version(), Started: a.started, Ready: true,
		TLS: a.cfg.TLSFor("client"), OpenAI: read.Upstream.OpenAI, Anthropic: read.Upstream.Anthropic, Upstreams: read.Upstreams(),
		Identity: a.cfg.Identity.Mode, DataDir: a.cfg.DataDir,
		Memory: health.Memory{
			Backend: a.cfg.Memory.Backend, Where: a.cfg.Memory.Endpoint, State: health.StateWorking,
			Recall: read.Recall.Enabled, Ingest: read.Ingest.Enabled,
		},
		Waiting:     a.waiting(),
		Unconfirmed: a.unconfirmed(),
	}
	if s.Identity == "single" && a.service != nil {
		s.Owner = a.service.Owner()
	}
	if a.proxy != nil {
		s.Listen = listening(a.cfg.Listen, a.proxy.Addr())
		s.Memory.Outcomes = a.proxy.Outcomes()
		for _, c := range a.proxy.Clients() {
			s.Clients = append(s.Clients, health.Client(c))
		}
	}
	m := &s.Memory
	if c := a.consent.Load(); c != nil {
		m.ConsentFor, m.ConsentSince = c.Endpoint, &c.Since
	}
	if m.Backend == "embedded" {
		m.Where = a.cfg.DataDir
	}
	if a.planner != nil && a.cfg.RemoteMemory() {
		if n, half, most := a.planner.SearchTimes(); n > 0 {
			m.Searches = &graphiti.SearchTimes{Count: n, Half: half.Milliseconds(), Most: most.Milliseconds(), Timeout: read.Recall.Timeout.Milliseconds()}
		}
	}
	if a.service != nil {
		s.Blocked = a.parts.state.Generations.Blocked()
	}
	s.Queue = a.queue()
	m.NotKept, m.InMemory = s.Queue.NotKept, s.Queue.InMemory
	files := a.files.Faults()
	switch {
	case slices.ContainsFunc(files, (*sqlite.Fault).Lasting):
		m.WithoutFiles(files)
	case m.Backend == "off":
		m.Where = ""
		m.TurnOff(health.FaultSetting, time.Time{}, "memory.backend is off", "")
	case a.memory != nil && moved(a.cfg, read):
		m.Moved(read.Memory.Endpoint)
	case !a.mayAsk():
		m.WithoutConsent(a.memory != nil, read.ConsentFor())
	default:
		if fresh {
			a.prober.Ask(ctx)
			s.Queue = a.queue()
		}
		m.Judge(a.prober.Last(), &s.Queue, files)
	}
	return s
}
