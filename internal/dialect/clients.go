package dialect

// client describes one client: its own requests, and its additions to a person's messages.
type client struct {
	name string

	chores []chore

	// Content of other authors, in a message of the user's role.
	tags   []string    // elements
	texts  []textMark  // whole texts, each a part of a message or all of it
	from   []preface   // texts before the person's words
	tails  []string    // begin paragraphs that continue to the end
	within []string    // elements: if one is present, only its content is the person's
	around []string    // elements that hold only the person's words
	files  [][2]string // lines that begin and end an attached file

	// interrupted holds the beginnings of texts which report that the person has
	// interrupted the model.
	interrupted []string

	quotes []string // in its prompt: it puts the words of its command line into quotation marks

	// answers holds the beginnings of the client's own answers to a summary that it put
	// into a message.
	answers []string
}

// textMark recognises a text of a client.
type textMark struct {
	start string // its beginning
	then  string // anywhere after start
	whole bool   // start is the whole text
	opens string // it opens a conversation, and the system prompt holds this text

	summary bool // it replaces earlier messages
}

// preface is a client's text before a person's words: it begins with start, and ends
// with the last line that equals end.
type preface struct {
	start, end string
	behind     bool // the line need only end with end
}

// chore recognises one kind of a client's own requests by its distinctive texts. The texts
// are anchored: system at the start of a system prompt's part, user at the start of a part
// of the newest user message, so that a person's quotation of one of them does not silence
// the person.
type chore struct {
	client string // filled in
	kind   Kind
	system string
	inside string // anywhere near the start of the system prompt
	user   string
	then   string   // soon after user
	holds  []string // begin lines after user, in this order
	whole  bool     // user is the whole message
	bare   bool     // others use the text too: it is a chore only if the request offers no tools
	agent  bool     // it is no chore: a subagent speaks, at the request of a model

	within, after []byte // inside and then, filled in
}

// clients are the known clients. Every request of a client that sends none of these texts
// is a turn.
var clients = []client{
	{
		name:   "opencode, Kilo",
		quotes: []string{"opencode", "You are Kilo"},
		chores: []chore{
			{kind: KindTitle, system: "You are a title generator."},
			{kind: KindSummary, system: "You are a context summarization agent."},
			{kind: KindSummary, user: "Here is the conversation so far:\n\n<conversation>\n", holds: []string{"</conversation>"}},
			// Of a part of the conversation; the final summary is made of those.
			{kind: KindProbe, user: "Summarize conversation chunk ", then: "Only summarize facts present in this chunk."},
			{kind: KindSummary, user: "Provide a detailed prompt for continuing our conversation above.", then: "Focus on information"},
		},
		texts: []textMark{
			{start: "What did we do so far?", whole: true, opens: "opencode", summary: true},
			{start: "What did we do so far?", whole: true, opens: "You are Kilo", summary: true},
			{start: "Continue if you have next steps, or stop and ask for"},
			{start: "The following tool was executed by the user", whole: true},
			{start: "Summarize the task tool output above and continue with your task.", whole: true},
			// Attached files.
			{start: attaching},
			{start: "Read tool failed to read ", then: " with the following error: "},
		},
	},
	{
		name: "Crush",
		chores: []chore{
			{kind: KindTitle, user: "Generate a concise title for the following content:", bare: true},
			{kind: KindSummary, user: "Provide a detailed summary of our conversation above.", whole: true, bare: true},
			{kind: KindTitle, system: "You will generate a short title based on the first"},
			{kind: KindSummary, system: "You are summarizing a conversation to preserve context"},
		},
		texts: []textMark{{start: "The previous session was interrupted because it got too long, the initial", summary: true}},
	},
	{
		name: "Open WebUI",
		chores: []chore{
			{kind: KindTitle, user: "### Task:\n", then: "Generate a concise, 3-5 word title"},
			{kind: KindTitle, user: "### Task:\n", then: "Generate 1-3 broad tags"},
			{kind: KindTitle, user: "### Task:\n", then: "relevant follow-up questions"},
			{kind: KindProbe, user: "### Task:\n", then: "necessity of generating search queries"},
			{kind: KindProbe, user: "### Task:\n", then: "Generate a detailed prompt for am image"},
			{kind: KindProbe, user: "### Task:\n", then: "You are an autocompletion system."},
			{kind: KindSummary, user: "### Task:\n", then: "Summarize the conversation history that will be"},
			{kind: KindSummary, user: "### Task:\n", holds: []string{"### Messages Being Compacted:"}},
			// Its templates change with each release, and people write their own.
			{kind: KindTitle, user: "### Task:\n", holds: []string{"### Output:", "<chat_history>", "</chat_history>"}},
			{kind: KindProbe, user: "Your task is to reflect the speaker's likely facial expr"},
			{kind: KindProbe, user: "You have been provided with a set of responses from vari"},
			{kind: KindProbe, system: "Available Tools: ", inside: "choose and return the correct tool(s)"},
			{agent: true, system: "You are a sub-agent working on a specific task assigned"},
		},
		from:   []preface{{start: "### Task:\nRespond to the user query using the provided context", end: "</context>"}},
		within: []string{"user_query"}, // also Cursor's
	},
	{
		name: "LibreChat",
		chores: []chore{
			{kind: KindTitle, user: "Analyze this conversation and provide:\n", bare: true},
			{kind: KindSummary, user: "Hold on, before you continue I need you to write me"},
			{kind: KindSummary, user: "Hold on again, update your checkpoint.", bare: true},
		},
	},
	{
		name: "VS Code Copilot",
		chores: []chore{
			{kind: KindTitle, system: "You are an expert in crafting pithy titles"},
		},
		tags:   []string{"environment_info", "workspace_info", "reminderInstructions", "editorContext"},
		within: []string{"userRequest"},
	},
	{
		name: "Copilot CLI",
		tags: []string{"current_datetime", "tagged_files", "user_shell_command_output"},
	},
	{
		name: "Continue",
		chores: []chore{
			{kind: KindTitle, user: "Given the following... please reply with a title"},
			{kind: KindSummary, user: "Please provide a concise summary of our conversation so far,", then: "Format this as a single"},
		},
	},
	{
		name: "pi",
		chores: []chore{
			{kind: KindSummary, system: "You are a context summarization assistant."},
		},
		from: []preface{{start: `<file name="`, end: "</file>", behind: true}},
	},
	{
		name: "Cline",
		chores: []chore{
			{kind: KindSummary, system: "Summarize the provided coding session into a concise contin"},
			{kind: KindSummary, user: "Summarize this session for continuation.", holds: []string{"## Goal", "Conversation:"}},
			{kind: KindSummary, user: `<explicit_instructions type="summarize_task">`},
			{kind: KindSummary, user: `<explicit_instructions type="condense">`},
		},
		tags:   []string{"file_content", "mode_notice"},
		texts:  []textMark{{start: "Context summary:\n\n", then: "\n## Files\nRead:", summary: true}},
		around: []string{"user_input"},
	},
	{
		name: "Roo, Kilo",
		chores: []chore{
			{kind: KindSummary, user: "Summarize the conversation so far, as described in the pro"},
		},
		tags: []string{"environment_details", "folder_content", "url_content", "workspace_diagnostics", "git_working_state", "git_commit"},
		texts: []textMark{
			{start: "[ERROR] You did not use a tool in your previous response!"},
			{start: "[TASK RESUMPTION] This task was interrupted"},
		},
		around: []string{"task", "feedback", "user_message"},
	},
	{
		name: "Zed",
		from: []preface{{start: "<context>\nThe following items were attached by the user.", end: "</context>"}},
	},
	{
		name: "Cursor",
		tags: []string{"attached_files", "additional_data", "open_and_recently_viewed_files", "manually_attached_skills"},
	},
	{
		name: "Qwen Code",
		chores: []chore{
			{kind: KindSummary, system: "You are the component that summarizes "},
			{kind: KindSummary, user: "Please analyze the conversation history above and generate a comprehensive"},
			{kind: KindProbe, system: "You are now acting as the managed memory extraction suba"},
			{kind: KindProbe, system: "You are performing a managed memory dream"},
		},
		texts: []textMark{{start: "This is the Qwen Code. We are setting up the context"}},
	},
	{
		name: "aider",
		chores: []chore{
			{kind: KindProbe, system: "You are an expert software engineer that generates concise"},
			{kind: KindSummary, system: "*Briefly* summarize this partial conversation"},
		},
		texts: []textMark{
			{start: "I have *added these files to the chat*"},
			{start: "Here are summaries of some files"},
			{start: "Here are some READ ONLY files"},
			{start: "I switched to a new code base. Please don't consid"},
			{start: "I am not sharing any files that you can edit yet."},
			{start: "I am not sharing the full contents of any files"},
			{start: "I spoke to you previously about a number of things.\n"},
			// Examples of answers.
			{start: "Change the greeting to be more casual"},
			{start: "Change get_factorial() to use math.factorial"},
			{start: "Refactor hello() into its own file."},
		},
		tails: []string{
			"To suggest changes to a file you MUST return the",
			"# *SEARCH/REPLACE block* Rules:",
			"# File editing rules:",
		},
	},
	{
		name: "Claude Code",
		chores: []chore{
			{kind: KindTitle, system: "You are naming a coding session"},
			{kind: KindTitle, system: "Summarize this coding conversation in under 50 characters."},
			{kind: KindSummary, system: "You are a helpful AI assistant tasked with summarizing conv"},
			{kind: KindProbe, user: "[SUGGESTION MODE: Suggest what the user might naturally"},
			{kind: KindProbe, system: "You are an expert at analyzing git history."},
			{kind: KindProbe, inside: "Analyze if this message indicates a new conversation topic."},
			{kind: KindProbe, inside: "You are now acting as the memory extraction subagent"},
			{kind: KindProbe, inside: "security monitor for autonomous AI coding agents"},
			{kind: KindProbe, inside: "Claude Code", user: "Warmup", whole: true},
			{kind: KindProbe, user: "quota", whole: true, bare: true},
		},
		tags: []string{
			"system-reminder", "local-command-caveat", "local-command-stdout", "local-command-stderr",
			"command-name", "command-message", "command-args", "task-notification",
			"bash-input", "bash-stdout", "bash-stderr", "user-memory-input", "user-prompt-submit-hook",
			"ide_selection", "ide_opened_file", "ide_diagnostics", "new-diagnostics",
		},
		texts: []textMark{
			{start: "This session is being continued from a previous conver", summary: true},
			{start: "Caveat: The messages below were generated by the user while running local"},
			{start: "Base directory for this skill: "},
			{start: "[Request interrupted by user]", whole: true},
			{start: "[Request interrupted by user for tool use]", whole: true},
			{start: "[structured-output-enforce] "},
		},
		interrupted: []string{"[Request interrupted by user"},
	},
	{
		name: "Codex",
		chores: []chore{
			{kind: KindTitle, user: "Generate a concise, single-line task title of at most"},
		},
		tags: []string{
			"environment_context", "user_instructions", "turn_aborted", "user_shell_command",
			"skill", "subagent_notification", "user_action", "realtime_conversation", "model_switch",
		},
		texts: []textMark{
			{start: "# AGENTS.md instructions for "},
			{start: "Another language model started to solve this problem", summary: true},
		},
		interrupted: []string{"<turn_aborted>"},
		from:        []preface{{start: "# Context from my IDE setup:", end: "## My request for Codex:"}, {start: "# Files mentioned by the user:", end: "## My request for Codex:"}},
	},
	{
		name: "Gemini CLI",
		chores: []chore{
			{kind: KindProbe, system: "You are a specialized Task Routing AI."},
			{kind: KindSummary, user: "Critically evaluate the <state_snapshot> you just"},
			{kind: KindProbe, system: "You are a specialized system component responsible for dis"},
			{kind: KindProbe, user: "Analyze *only* the content and structure of your immediate"},
			{kind: KindProbe, system: "You are a diagnostic agent that determines whether a conv"},
			{kind: KindProbe, system: "You are an expert code-editing assistant", bare: true},
			{kind: KindTitle, user: "Summarize the user's primary intent or goal in this conver"},
			{kind: KindProbe, user: "### State Update: Agent Continuity"},
			{kind: KindProbe, user: "The following output from the tool '", bare: true},
			{kind: KindProbe, system: "You are an expert context compressor."},
			{kind: KindProbe, system: "You are an expert Context Memory Manager."},
			{kind: KindProbe, user: "Write one short, friendly sentence acknowledging a user st"},
			{kind: KindProbe, user: "You are a security expert responsible for generating fine-"},
			{kind: KindProbe, user: "You are a security enforcement engine.", bare: true},
			{kind: KindProbe, system: "You are a Visual Analysis Agent."},
		},
		tags: []string{"session_context", "hook_context", "scratchpad", "state_snapshot"}, // the last two after compaction
		texts: []textMark{
			{start: "This is the Gemini CLI. We are setting up the context"},
			{start: "Here is the user's editor context"},
			{start: "Here is a summary of changes in the user's editor con"},
			{start: "[System: You previously "},
			{start: "System: Potential loop detected. Details: "},
		},
		files:   [][2]string{{"--- Content from referenced files ---", "--- End of content ---"}}, // also Qwen Code's
		answers: []string{"Got it. Thanks for the additional context!"},                           // also Qwen Code's
	},
	{
		name: "Goose",
		chores: []chore{
			{kind: KindTitle, user: "Generate a short title (four words or less)", bare: true},
			{kind: KindSummary, user: "The messages above are a conversation to summarize.", bare: true},
			{kind: KindSummary, user: "Please summarize the conversation history provided in the system prompt.", whole: true},
		},
		answers: []string{"The previous message contains a summary ", "Your context was compacted. The previous message contains a summary"},
	},
	{
		name:  "Kimi Code",
		texts: []textMark{{start: "The conversation so far has been compacted to free up context.", summary: true}},
	},
	{
		name:  "OpenClaw",
		tails: []string{"Runtime: agent="},
	},
	{
		name:   "gptme",
		chores: []chore{{kind: KindTitle, system: "Generate concise conversation titles."}},
		tags:   []string{"system"},
	},
	{
		name: "smolagents",
		from: []preface{
			{start: "New task:\n", end: "New task:"},
			{start: "Observation:\n", end: "New task:"},
			{start: "Error:\n", end: "New task:"},
		},
		chores: []chore{
			{kind: KindProbe, user: "You are a world expert at analyzing a situation"},
			{kind: KindProbe, system: "You are a world expert at analyzing a situation"},
		},
		texts: []textMark{
			{start: "Observation:\n"},
			{start: "Error:\n", then: "\nNow let's retry: take care not to repeat"},
			{start: "Call id: ", then: "\nNow let's retry: take care not to repeat"},
			{start: "Now proceed and carry out this plan.", whole: true},
		},
	},
	{
		name: "Pydantic AI, AutoGen",
		texts: []textMark{
			{start: "Validation feedback:\n", then: "\n\nFix the errors and try again."},
			{start: "No valid name was mentioned. Please select from: ["},
			{start: "Expected exactly one name to be mentioned. Please select"},
			{start: "Repeated speaker is not allowed, please select a differe"},
		},
	},
	{
		name: "Strands, agno",
		chores: []chore{
			{kind: KindSummary, system: "You are a conversation summarizer.", user: "Please summarize this conversation.", bare: true},
			{kind: KindProbe, user: "Provide the summary of the conversation.", whole: true, bare: true},
		},
	},
	{
		name: "instructor",
		texts: []textMark{
			{start: "Validation Error found:\n"},
			{start: "Correct your JSON ONLY RESPONSE, based on the following errors:"},
		},
	},
	{
		name: "LlamaIndex, LangChain",
		chores: []chore{
			{kind: KindProbe, user: "Given the following conversation", then: "standalone question"},
		},
	},
}
