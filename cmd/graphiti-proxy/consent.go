package main

import (
	"log/slog"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
)

// consent is the permission to send conversations to the memory in use. It is valid for the
// endpoint in the same configuration, which may differ from the endpoint in use after a
// reload. The embedded memory needs no consent.
type consent struct {
	*settings
	log   *slog.Logger
	noted atomic.Pointer[datadir.Consent] // from data_dir; nil if none is needed or given
}

// given reports whether a configuration gives consent.
func (c *consent) given(read *config.Config) bool {
	return !c.cfg.RemoteMemory() || read.Consented() && !c.moved(read)
}

// note writes the time of the consent to data_dir.
func (c *consent) note() error {
	if !c.cfg.RemoteMemory() {
		return nil
	}
	noted, first, err := datadir.NoteConsent(c.cfg.DataDir, c.cfg.Memory.Endpoint)
	c.noted.Store(noted)
	if first {
		c.log.Info("from now on, messages and answers are sent to this memory, without the secrets that redaction finds",
			"endpoint", c.cfg.Memory.Endpoint, "stop", "memory.consent: false", "delete", "graphiti-proxy memory forget")
	}
	return err
}

// reload applies the consent of a configuration, and reports whether it is given.
func (c *consent) reload(cfg *config.Config) bool {
	if c.given(cfg) {
		if err := c.note(); err != nil {
			c.log.Warn("write consent to data_dir failed", "error", err)
		}
		return true
	}
	c.noted.Store(nil)
	if err := datadir.WithdrawConsent(c.cfg.DataDir); err != nil {
		c.log.Warn("remove consent from data_dir failed", "error", err)
	}
	c.log.Warn("memory is off: consent to send conversations to the memory's endpoint was withdrawn",
		"endpoint", c.cfg.Memory.Endpoint, "configured", cfg.Memory.Endpoint)
	return false
}

func (c *consent) describe(m *health.MemoryStatus) {
	if noted := c.noted.Load(); noted != nil {
		m.ConsentFor, m.ConsentSince = noted.Endpoint, &noted.Since
	}
}
