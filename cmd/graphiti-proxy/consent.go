package main

import (
	"log/slog"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// consent is the permission to send conversations to the endpoints in use. It is valid for
// the endpoints in the same configuration, which may differ from those in use after a
// reload. The embedded memory itself needs no consent.
type consent struct {
	*settings
	log   *slog.Logger
	known []sent // explained already
}

// given reports whether a configuration gives consent for the memory.
func (c *consent) given(read *config.Config) bool {
	return !c.cfg.RemoteMemory() || read.Consented() && !c.moved(read)
}

// sent is the content that an endpoint receives, and how to delete it.
type sent struct{ endpoint, content, purge string }

// sentToMemory is the content that a memory service receives.
const sentToMemory = "messages and answers of turns, and questions to search for"

// sends returns the endpoints in use for which a configuration gives consent.
func (c *consent) sends(read *config.Config) (to []sent) {
	const there = "graphiti-proxy memory forget deletes the results here; the endpoint's own logs are out of its reach"
	if c.cfg.RemoteMemory() && c.given(read) {
		to = append(to, sent{c.cfg.Memory.Endpoint, sentToMemory, "graphiti-proxy memory forget"})
	}
	if url := c.cfg.Embedding.URL; !c.cfg.RemoteMemory() && url != "" && url == read.Embedding.URL && read.Consented() {
		to = append(to, sent{url, "stored messages and questions, to compare their meaning", there})
	}
	if url := c.cfg.Distil.URL; url != "" && url == read.Distil.URL && read.DistilConsented() {
		to = append(to, sent{url, "conversations after a silence, to distil facts", there})
	}
	return to
}

// explain logs the data that each endpoint receives.
func (c *consent) explain(read *config.Config) {
	before := c.known
	c.known = c.sends(read)
	kept := "all messages, in data_dir"
	if c.cfg.State.Backend == "postgres" {
		kept = "all messages, in Postgres"
	}
	for _, s := range c.known {
		if !slices.Contains(before, s) {
			c.log.Info("conversations are sent to this endpoint from now on, without the secrets that redaction finds",
				"endpoint", s.endpoint, "sent", s.content, "kept_here", kept, "limit", "memory.retain", "stop", "memory.consent: false", "purge", s.purge)
		}
	}
}

// reload applies the consent of a configuration, and reports whether it is given for the
// memory.
func (c *consent) reload(read *config.Config) bool {
	c.explain(read)
	if c.given(read) {
		return true
	}
	c.log.Warn("memory is off: consent to send conversations to the memory's endpoint was withdrawn",
		"endpoint", c.cfg.Memory.Endpoint, "configured", read.Memory.Endpoint)
	return false
}
