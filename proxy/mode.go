package proxy

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// mode is what configuration, person, place and client allow.
func (s *decider) mode(r *request, d *decision, until time.Time) inject.Mode {
	h := r.head
	m := inject.Mode{
		Until: until, Generation: d.generation,
		Recall: r.memory.Recall,
		Ingest: r.memory.Ingest && !d.caller.Temporary && !d.subagent,
		Nobody: d.promises.stranger,
		Replay: r.route.replays(),
	}
	if d.caller.Off || d.project.Repo.Ignore || r.memory.Rules.skips(h.RequestURI(), r.conv.Model) {
		return inject.Mode{Until: until, Generation: d.generation, Reason: inject.ReasonOptOut}
	}
	if reason := r.memory.Rules.refuses(&d.project); reason != inject.ReasonNone {
		return inject.Mode{Until: until, Generation: d.generation, Reason: reason}
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
				return inject.Mode{Until: until, Generation: d.generation, Reason: inject.ReasonOptOut}
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

// signals reads what clients say outright about what a request is for, which
// counts for more than its text. It reports whether a subagent speaks: what it
// is told comes from a model, and is not kept.
func signals(h *fasthttp.RequestHeader, c *dialect.Conversation) (subagent bool) {
	set := func(k dialect.Kind) {
		if c.Kind == dialect.KindTurn {
			c.Kind = k
		}
	}
	// Codex, from 0.169.
	if told := h.Peek("X-Codex-Turn-Metadata"); len(told) > 0 {
		switch kind := gjson.GetBytes(told, "request_kind").Str; kind {
		case "", "turn":
		case "compaction":
			set(dialect.KindSummary)
		default: // prewarm, review…
			set(dialect.KindProbe)
		}
		subagent = gjson.GetBytes(told, "thread_source").Str == "subagent"
	}
	switch s := h.Peek("X-Openai-Subagent"); {
	case len(s) == 0:
	case string(s) == "collab_spawn":
		subagent = true
	default: // review, compact, memory_consolidation…
		set(dialect.KindProbe)
	}
	if bytes.EqualFold(h.Peek("X-Openai-Memgen-Request"), []byte("true")) {
		set(dialect.KindProbe)
	}
	// Claude Code, from 2.1.273, when asked for hints.
	switch string(h.Peek("X-Claude-Code-Request-Class")) {
	case "auxiliary":
		set(dialect.KindTitle)
	case "compaction":
		set(dialect.KindSummary)
	case "subagent":
		subagent = true
	}
	// Copilot.
	switch string(h.Peek("X-Interaction-Type")) {
	case "conversation-background":
		set(dialect.KindProbe)
	case "conversation-subagent":
		subagent = true
	}
	return subagent || len(h.Peek("X-Claude-Code-Agent-Id")) > 0 || len(h.Peek("X-Parent-Session-Id")) > 0
}
