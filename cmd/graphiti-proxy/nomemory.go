package main

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// noMemory is the memory of a proxy without one until a restart. It reports the reason.
type noMemory struct {
	files *files
	given proxy.Memory
	why   func(*health.MemoryStatus)
}

// unwanted returns the memory of a proxy with memory.backend off.
func unwanted(f *files) *noMemory {
	return &noMemory{files: f, why: func(m *health.MemoryStatus) {
		m.Where = ""
		m.TurnOff(health.FaultSetting, time.Time{}, "memory.backend is off", "")
	}}
}

// withoutConsent returns the memory of a proxy without consent.
func withoutConsent(s *settings, f *files) *noMemory {
	return &noMemory{files: f, given: proxy.Memory{Off: proxy.Off{Reason: inject.ReasonConsent}}, why: func(m *health.MemoryStatus) {
		read := s.live.Load()
		m.WithoutConsent(false, read.Memory.Endpoint, read.ConsentFor())
	}}
}

// withoutFiles returns the memory of a proxy with a file that could not be opened.
func withoutFiles(f *files) *noMemory {
	return &noMemory{files: f, given: f.serving(), why: func(m *health.MemoryStatus) { m.WithoutFiles(f.faults()) }}
}

func (n *noMemory) serving() proxy.Memory { return n.given }
func (*noMemory) start(*proxy.Server)     {}
func (*noMemory) warm(context.Context)    {}

// reload only checks for mistakes.
func (*noMemory) reload(cfg *config.Config, rest func() error) error {
	if _, err := identity.LoadPeople(cfg.Identity.UsersFile); err != nil {
		return err
	}
	if _, _, err := identitySettings(cfg); err != nil {
		return err
	}
	return rest()
}

func (n *noMemory) host() *service.Host {
	return &service.Host{Counts: func(context.Context) (capture.QueueStatus, error) { return n.queue(), nil }}
}

func (n *noMemory) describe(_ context.Context, s *health.Status, _ bool) {
	s.Queue = n.queue()
	s.Memory.NotKept, s.Memory.InMemory = s.Queue.NotKept, s.Queue.InMemory
	n.why(&s.Memory)
}

func (n *noMemory) queue() capture.QueueStatus {
	s := capture.QueueStatus{Delivers: true} // all that there is
	n.files.addTo(&s)
	return s
}
