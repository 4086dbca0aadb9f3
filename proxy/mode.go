package proxy

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
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
		Ingest: r.memory.Ingest && !d.caller.Temporary && !d.subagent,
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

// relaxed asks the provider to take a conversation that has lost a block, where
// the API has a way to.
func relaxed(r *request, inserts []dialect.Insert) ([]dialect.Insert, *dialect.Relax) {
	relax := r.route.dialect.Info().Relax
	if relax == nil {
		return inserts, nil
	}
	insert, ok := relax.Insert(r.text())
	if !ok {
		return inserts, nil
	}
	at, _ := slices.BinarySearchFunc(inserts, insert.At+1, func(in dialect.Insert, at int) int { return in.At - at })
	return slices.Insert(slices.Clone(inserts), at, insert), relax
}
