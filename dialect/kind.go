package dialect

import (
	"bytes"
	"slices"
)

// Kind says what a request is for.
type Kind uint8

// The kinds of requests. All but KindTurn are forwarded without new recall
// and are not kept.
const (
	KindTurn    Kind = iota // a person's turn, or a tool round of one
	KindTitle               // a title, tags or follow-ups are asked for
	KindSummary             // the client compacts its history
	KindProbe               // quota, topic, autocompletion, choice of tools
	KindMachine             // no person wrote the newest user message
)

// chore recognises one kind of request that a client makes for itself. The
// texts are anchored: system at the start of the first message, user at the
// start of the newest user message, and then, after it, so that a person who
// quotes one of them is not silenced.
type chore struct {
	client string
	kind   Kind
	system string
	within string // stands anywhere near the start of the system prompt
	user   string
	then   string // stands anywhere behind user
	whole  bool   // user is all that the message says
	tools  bool   // the client offers tools even so
}

// chores lists what is known. A client that sends none of these texts is
// taken at its word: every request is a turn.
var chores = []chore{
	{client: "opencode, Kilo", kind: KindTitle, system: "You are a title generator."},
	{client: "opencode, Kilo", kind: KindSummary, system: "You are a context summarization agent."},
	{client: "opencode", kind: KindMachine, user: "What did we do so far?", tools: true},
	{client: "opencode", kind: KindMachine, user: "Continue if you have next steps, or stop and ask for", tools: true},
	{client: "opencode", kind: KindMachine, user: "The following tool was executed by the user", tools: true},
	{client: "Crush", kind: KindTitle, user: "Generate a concise title for the following content:"},
	{client: "Crush", kind: KindSummary, user: "Provide a detailed summary of our conversation above.", whole: true},
	{client: "Crush", kind: KindTitle, system: "You will generate a short title based on the first"},
	{client: "Crush", kind: KindSummary, system: "You are summarizing a conversation to preserve context"},
	{client: "Open WebUI", kind: KindTitle, user: "### Task:\n", then: "Generate a concise, 3-5 word title"},
	{client: "Open WebUI", kind: KindTitle, user: "### Task:\n", then: "Generate 1-3 broad tags"},
	{client: "Open WebUI", kind: KindTitle, user: "### Task:\n", then: "relevant follow-up questions"},
	{client: "Open WebUI", kind: KindProbe, user: "### Task:\n", then: "necessity of generating search queries"},
	{client: "Open WebUI", kind: KindProbe, user: "### Task:\n", then: "Generate a detailed prompt for am image"},
	{client: "Open WebUI", kind: KindProbe, user: "### Task:\n", then: "You are an autocompletion system."},
	{client: "Open WebUI", kind: KindSummary, user: "### Task:\n", then: "Summarize the conversation history that will be"},
	{client: "Open WebUI", kind: KindProbe, user: "Your task is to reflect the speaker's likely facial expr"},
	{client: "Open WebUI", kind: KindProbe, user: "You have been provided with a set of responses from vari"},
	{client: "Open WebUI", kind: KindProbe, system: "Available Tools: ", within: "choose and return the correct tool(s)"},
	{client: "LibreChat", kind: KindTitle, user: "Analyze this conversation and provide:\n"},
	{client: "LibreChat", kind: KindSummary, user: "Hold on, before you continue I need you to write me"},
	{client: "LibreChat", kind: KindSummary, user: "Hold on again, update your checkpoint."},
	{client: "VS Code Copilot", kind: KindTitle, system: "You are an expert in crafting pithy titles"},
	{client: "VS Code Copilot", kind: KindSummary, user: "Your task is to create a comprehensive, detailed summary"},
	{client: "Continue", kind: KindTitle, user: "Given the following... please reply with a title"},
	{client: "Continue", kind: KindSummary, user: "Create a comprehensive summary of this conversation that"},
	{client: "Continue", kind: KindSummary, user: "Please provide a concise summary of our conversation so "},
	{client: "Roo, Kilo", kind: KindSummary, user: "Summarize the conversation so far, as described in the pro"},
	{client: "Cline", kind: KindSummary, user: `<explicit_instructions type="summarize_task">`, tools: true},
	{client: "Cline", kind: KindSummary, user: `<explicit_instructions type="condense">`, tools: true},
	{client: "Qwen Code", kind: KindProbe, system: "You are now acting as the managed memory extraction suba", tools: true},
	{client: "aider", kind: KindProbe, system: "You are an expert software engineer that generates concise"},
	{client: "aider", kind: KindSummary, system: "*Briefly* summarize this partial conversation"},
	{client: "Claude Code", kind: KindTitle, system: "You are naming a coding session"},
	{client: "Claude Code", kind: KindTitle, system: "Summarize this coding conversation in under 50 characters."},
	{client: "Claude Code", kind: KindSummary, user: "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.", tools: true},
	{client: "Claude Code", kind: KindSummary, system: "You are a helpful AI assistant tasked with summarizing conv"},
	{client: "Claude Code", kind: KindProbe, user: "[SUGGESTION MODE: Suggest what the user might naturally", tools: true},
	{client: "Claude Code", kind: KindProbe, system: "You are an expert at analyzing git history."},
	{client: "Claude Code", kind: KindProbe, within: "Analyze if this message indicates a new conversation topic."},
	{client: "Claude Code", kind: KindProbe, within: "You are now acting as the memory extraction subagent", tools: true},
	{client: "Claude Code", kind: KindProbe, within: "security monitor for autonomous AI coding agents", tools: true},
	{client: "Claude Code", kind: KindProbe, user: "Warmup", whole: true, tools: true},
	{client: "Claude Code", kind: KindProbe, user: "quota", whole: true},
	{client: "Codex", kind: KindSummary, user: "You are performing a CONTEXT CHECKPOINT COMPACTION."},
	{client: "Codex", kind: KindTitle, user: "Generate a concise, single-line task title of at most"},
	{client: "Gemini CLI", kind: KindProbe, system: "You are a specialized Task Routing AI."},
	{client: "Gemini CLI", kind: KindSummary, user: "Critically evaluate the <state_snapshot> you just"},
	{client: "Gemini CLI", kind: KindProbe, system: "You are a specialized system component responsible for dis"},
	{client: "Gemini CLI", kind: KindProbe, user: "Analyze *only* the content and structure of your immediate"},
	{client: "Gemini CLI", kind: KindProbe, system: "You are a diagnostic agent that determines whether a conv"},
	{client: "Gemini CLI", kind: KindProbe, system: "You are an expert code-editing assistant"},
	{client: "Gemini CLI", kind: KindTitle, user: "Summarize the user's primary intent or goal in this conver"},
	{client: "Gemini CLI", kind: KindProbe, user: "### State Update: Agent Continuity"},
	{client: "Gemini CLI", kind: KindProbe, user: "The following output from the tool '"},
	{client: "Gemini CLI", kind: KindProbe, system: "You are an expert context compressor."},
	{client: "Gemini CLI", kind: KindProbe, system: "You are an expert Context Memory Manager."},
	{client: "Gemini CLI", kind: KindProbe, user: "Write one short, friendly sentence acknowledging a user st"},
	{client: "Gemini CLI", kind: KindProbe, user: "You are a security expert responsible for generating fine-"},
	{client: "Gemini CLI", kind: KindProbe, user: "You are a security enforcement engine."},
	{client: "Gemini CLI", kind: KindProbe, system: "You are a Visual Analysis Agent."},
	{client: "Goose", kind: KindTitle, user: "Generate a short title (four words or less)"},
	{client: "Goose", kind: KindSummary, user: "The messages above are a conversation to summarize."},
}

// near bounds how far behind the start of a message a chore's text is sought.
const near = 400

// kind looks the request up in chores.
func (c *Conversation) kind() Kind {
	var user []byte
	var system [][]byte
	for i := c.prompt.from; i < min(c.prompt.to, c.prompt.from+maxPrompts); i++ {
		system = append(system, trim(c.startOf(c.spans[i])))
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if i == 0 && system == nil && m.Role == RoleOther && m.from < m.to {
			system = append(system, trim(c.start(m)))
		}
		if m.Role == RoleUser && (m.Person || !m.Results) {
			c.Newest = i
		}
	}
	if c.Newest >= 0 {
		user = trim(c.start(&c.Messages[c.Newest]))
	}
	for i := range chores {
		if chores[i].matches(system, user, c.Tools) {
			return chores[i].kind
		}
	}
	if c.Newest > c.Last && c.Newest == len(c.Messages)-1 && c.Last >= 0 {
		return KindMachine
	}
	return KindTurn
}

func (ch *chore) matches(system [][]byte, user []byte, tools bool) bool {
	if tools && !ch.tools {
		return false // clients offer none for a chore
	}
	if ch.system != "" || ch.within != "" {
		return slices.ContainsFunc(system, func(s []byte) bool {
			return bytes.HasPrefix(s, []byte(ch.system)) && bytes.Contains(s, []byte(ch.within))
		})
	}
	if ch.whole {
		return string(user) == ch.user
	}
	return bytes.HasPrefix(user, []byte(ch.user)) && bytes.Contains(user[len(ch.user):], []byte(ch.then))
}

// start is the beginning of a message's text.
func (c *Conversation) start(m *Message) []byte {
	if m.from == m.to {
		return nil
	}
	return c.startOf(c.spans[m.from])
}

// maxPrompts bounds the parts of a system prompt that are looked at.
const maxPrompts = 8

func (c *Conversation) startOf(s Span) []byte {
	raw := c.body[s.Start:s.End]
	if !s.Escaped {
		return raw[:min(len(raw), near)]
	}
	if len(raw) > near {
		raw = raw[:near]
		// Do not cut an escape in two.
		if i := bytes.LastIndexByte(raw, '\\'); i >= 0 && i > near-12 {
			raw = raw[:i-backslashes(raw[:i])]
		}
	}
	return appendText(nil, raw)
}
