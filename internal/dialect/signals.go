package dialect

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// Signals reads the headers in which clients state the purpose of a request. They take
// precedence over its text. It reports whether a subagent speaks: then a model wrote its
// messages, and they are not stored.
func (c *Conversation) Signals(h Header) (subagent bool) {
	set := func(k Kind) {
		if c.Kind == KindTurn || c.Guessed {
			c.Kind, c.Guessed = k, false
		}
	}
	// Codex, from 0.169. A subagent's turn belongs to the turn of its parent. A turn that
	// belongs to itself comes from a person who continues the subagent's thread.
	person := false
	if turnData := h.Peek("X-Codex-Turn-Metadata"); len(turnData) > 0 {
		switch kind := gjson.GetBytes(turnData, "request_kind").Str; kind {
		case "", "turn":
		case "compaction":
			set(KindSummary)
		default: // prewarm, review…
			set(KindProbe)
		}
		spawned := gjson.GetBytes(turnData, "thread_source").Str == "subagent"
		turn := gjson.GetBytes(turnData, "turn_id").Str
		person = spawned && turn != "" && gjson.GetBytes(turnData, "root_turn_id").Str == turn
		subagent, c.spawned = spawned && !person, spawned
	}
	switch s := h.Peek("X-Openai-Subagent"); {
	case len(s) == 0:
	case string(s) == "collab_spawn":
		subagent = !person
	default: // review, compact, memory_consolidation…
		set(KindProbe)
	}
	if bytes.EqualFold(h.Peek("X-Openai-Memgen-Request"), []byte("true")) {
		set(KindProbe)
	}
	// Claude Code, from 2.1.273, if hints are enabled.
	switch string(h.Peek("X-Claude-Code-Request-Class")) {
	case "auxiliary":
		set(KindTitle)
	case "compaction":
		set(KindSummary)
	case "subagent":
		subagent = true
	}
	// Copilot.
	switch string(h.Peek("X-Interaction-Type")) {
	case "conversation-background":
		set(KindProbe)
	case "conversation-compaction":
		set(KindSummary)
	case "conversation-subagent":
		subagent = true
	}
	return subagent || c.agent || len(h.Peek("X-Claude-Code-Agent-Id")) > 0 || len(h.Peek("X-Parent-Session-Id")) > 0
}

// Spawned reports whether the client states that a model started this conversation. A person
// may continue it.
func (c *Conversation) Spawned() bool { return c.spawned }
