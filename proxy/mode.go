package proxy

import (
	"bytes"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// mode is what configuration, person, place and client allow.
func (s *decider) mode(r *request, d *decision, until time.Time) inject.Mode {
	h := r.head
	none := func(reason inject.Reason) inject.Mode {
		return inject.Mode{Until: until, Generation: d.generation, Reason: reason}
	}
	m := inject.Mode{
		Until: until, Generation: d.generation,
		Recall: r.memory.Recall,
		Ingest: r.memory.Ingest && !d.caller.Temporary && !d.subagent && !s.known.isTemplate(d.at.person, &d.who, &r.conv),
		Nobody: d.promises.stranger,
		Replay: r.route.replays(),
	}
	if d.caller.Off || d.project.Repo.Ignore || r.memory.Rules.skips(h.RequestURI(), r.conv.Model) {
		return none(inject.ReasonOptOut)
	}
	if reason := r.memory.Rules.refuses(&d.project); reason != inject.ReasonNone {
		return none(reason)
	}
	for _, v := range h.PeekAll(memoryHeader) {
		for word := range bytes.SplitSeq(v, []byte{','}) {
			switch strings.ToLower(string(bytes.TrimSpace(word))) {
			case "", "on":
			case "recall":
				m.Ingest = false
			case "ingest":
				m.Recall, m.Reason = false, inject.ReasonOptOut
			default: // off, and what may be meant so
				return none(inject.ReasonOptOut)
			}
		}
	}
	return m
}
