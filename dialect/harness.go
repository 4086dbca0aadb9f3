package dialect

import "bytes"

// harnessTags are the elements that clients put into user messages beside what
// the person wrote, and our own block, which some clients send back.
var harnessTags = [...]string{
	"graphiti_memory",
	"system-reminder",                                              // Claude Code
	"local-command-caveat", "local-command-stdout", "command-name", // Claude Code
	"command-message", "command-args", "task-notification", // Claude Code
	"environment_context", "user_instructions", "turn_aborted", "user_shell_command", // Codex
	"skill", "subagent_notification", "user_action", "realtime_conversation", "model_switch", // Codex
	"environment_details",                                             // Kilo, Roo, Cline
	"current_datetime",                                                // Copilot CLI
	"session_context", "hook_context", "scratchpad", "state_snapshot", // Gemini CLI; the last two after compaction
}

// harnessStarts begin user messages that no person wrote.
var harnessStarts = []string{
	"# AGENTS.md instructions for ",                          // Codex
	"Another language model started to solve this problem",   // Codex, after compaction
	"This session is being continued from a previous conver", // Claude Code, after compaction
	"This is the Qwen Code. We are setting up the context",   // Qwen Code
	"Here is the user's editor context as a JSON object.",    // Gemini CLI
	"Here is a summary of changes in the user's editor con",  // Gemini CLI
	"[System: You previously ",                               // Gemini CLI
	"System: Potential loop detected. Details: ",             // Gemini CLI
	"I have *added these files to the chat*",                 // aider
	"Here are summaries of some files",                       // aider
	"Here are some READ ONLY files",                          // aider
	"I switched to a new code base. Please don't consid",     // aider
	"I am not sharing any files that you can edit yet.",      // aider
	"I am not sharing the full contents of any files",        // aider
	"Change the greeting to be more casual",                  // aider, an example of how to answer
	"Change get_factorial() to use math.factorial",           // aider, likewise
	"Refactor hello() into its own file.",                    // aider, likewise
}

// harnessTails begin what clients put behind the person's words, to the end.
var harnessTails = []string{
	"To suggest changes to a file you MUST return the", // aider
	"# *SEARCH/REPLACE block* Rules:",                  // aider
	"# File editing rules:",                            // aider
}

// mayHoldHarness reports whether text, as it stands in a JSON string, needs a
// closer look. first says that it begins its message, escapes that characters
// may be written as \u003c.
func mayHoldHarness(raw []byte, role Role, first, escapes bool) bool {
	bracket := bytes.IndexByte(raw, '<') >= 0 || escapes && bytes.Contains(raw, []byte(`\u003`))
	if bracket || role == RoleAssistant {
		return bracket
	}
	return first && startsLikeHarness(trimRaw(raw)) || tail(raw) >= 0
}

// tail is where a text of a harness begins that goes on to the end, or -1.
func tail(text []byte) int {
	for _, t := range harnessTails {
		if i := bytes.Index(text, []byte(t)); i >= 0 {
			return i
		}
	}
	return -1
}

func startsLikeHarness(text []byte) bool {
	for _, s := range harnessStarts {
		if bytes.HasPrefix(text, []byte(s)) {
			return true
		}
	}
	return false
}

// stripHarness takes out what the person, or the model, did not say.
func (c *Conversation) stripHarness(text []byte, role Role) []byte {
	if role == RoleAssistant {
		return stripElement(stripElement(text, "think"), "graphiti_memory")
	}
	opened := openedIn(text)
	for i, tag := range harnessTags {
		if opened[i] && c.after(len(text)) {
			text = stripElement(text, tag)
		}
	}
	if startsLikeHarness(trim(text)) {
		return nil
	}
	// In a paragraph of its own: a person may ask about it.
	if i := tail(text); i == 0 || i > 1 && text[i-1] == '\n' && text[i-2] == '\n' {
		text = text[:i]
	}
	return text
}

// openedIn tells which of harnessTags may open in a text: most texts with a
// bracket in them hold none, and those with many need not be read for each.
func openedIn(text []byte) (opened [len(harnessTags)]bool) {
	for {
		i := bytes.IndexByte(text, '<') + 1
		if i == 0 {
			return opened
		}
		text = text[i:]
		if len(text) == 0 {
			return opened
		}
		for _, n := range tagsBy[text[0]] {
			tag := harnessTags[n]
			opened[n] = opened[n] || len(text) > len(tag) && string(text[:len(tag)]) == tag
		}
	}
}

// tagsBy are places in harnessTags, by the byte that a tag begins with.
var tagsBy = func() (by [256][]int) {
	for n, tag := range harnessTags {
		by[tag[0]] = append(by[tag[0]], n)
	}
	return by
}()

// stripElement takes out every <tag …>…</tag>. One that is not closed is left.
// Its time is linear in the text's size: what is looked for behind an opening
// tag is passed over when it is found, and ends the search when it is not.
func stripElement(text []byte, tag string) []byte {
	open, shut := []byte("<"+tag), []byte("</"+tag+">")
	var out []byte
	kept := 0 // up to where out has what is left of text
	for at := 0; ; {
		i := bytes.Index(text[at:], open)
		if i < 0 {
			break
		}
		i += at
		if at = i + len(open); at == len(text) {
			break
		}
		if c := text[at]; c != '>' && !isSpace(c) { // a longer name
			continue
		}
		j := bytes.Index(text[at:], shut)
		if j < 0 {
			break
		}
		out = append(out, text[kept:i]...)
		at += j + len(shut)
		kept = at
	}
	if kept == 0 {
		return text
	}
	return append(out, text[kept:]...)
}
