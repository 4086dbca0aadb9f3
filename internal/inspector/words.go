package inspector

import (
	"cmp"
	"strings"
)

// explained is a word of the proxy's in a sentence, with what one can do.
type explained struct{ Says, Remedy string }

// reasons say why a turn has no block, by the words of the X-Graphiti-Memory header.
var reasons = map[string]explained{
	"nothing":          {"Nothing was found.", "Ask with the words that were used then."},
	"weak":             {"Something was found, but nothing of it answered the message well enough to be worth showing.", "Name more of what you mean; Search shows how much was missing."},
	"visible":          {"What was found stands in the conversation already, so the model has it.", ""},
	"routine":          {"The message said nothing that could be looked up, such as “continue” or “thanks”.", ""},
	"title":            {"The client asked for a title for itself, and not for a person.", ""},
	"summary":          {"The client asked for a summary for itself, and not for a person.", ""},
	"probe":            {"The client tried whether the provider answers.", ""},
	"machine":          {"The client asked for itself, and not for a person.", ""},
	"subagent":         {"An agent of the client asked, and not a person: the turn is not kept.", ""},
	"encoding":         {"The body of the request could not be read.", ""},
	"too_large":        {"The body of the request is larger than what is read.", "Raise limits.max_inspect if such requests are wanted with memory."},
	"no_user_message":  {"The request has no message of a person.", ""},
	"not_persisted":    {"The decision could not be stored, so nothing was inserted.", "Look whether data_dir can be written."},
	"consent":          {"There is no consent to send conversations to the memory.", "Set memory.consent to true."},
	"opt_out":          {"Memory was switched off for the request, its project or its person.", ""},
	"untrusted":        {"It is not certain who asked, or the project is not among those with memory.", "Name it in workspace.trusted."},
	"nobody":           {"It is not known who asked, so nobody’s memory was searched.", ""},
	"place":            {"It is not known in which project the request was made.", "Send the header X-Graphiti-Workspace, or report the version of the client."},
	"forgotten":        {"A block of the conversation was forgotten, so it gets no more: newer models refuse a changed history.", "Start a new conversation."},
	"state":            {"A file of the data directory cannot be used.", "Today shows which, and what helps."},
	"busy":             {"Too many requests were inspected at once.", ""},
	"timeout":          {"The memory did not answer in time.", "Raise recall.timeout, or look at why searches take so long."},
	"error":            {"The memory could not be searched.", "Today shows why, and what helps."},
	"timeout or error": {"Nothing was found in time, or the memory could not be searched.", "Today shows how the memory is."},
}

// reasonOf explains a word, also one that is not known here.
func reasonOf(word string) explained {
	if e, ok := reasons[word]; ok {
		return e
	}
	return explained{Says: "It says “" + oneLine(word) + "”."}
}

// verdicts say why a piece was shown or not.
var verdicts = map[string]struct{ Label, Says string }{
	"shown":                     {"shown", "It answered the message, and there was room for it."},
	"not valid now":             {"not valid now", "It was not true any more, or not yet, when the message was sent."},
	"said in this conversation": {"said here", "It was said in this conversation: the model had it."},
	"in an earlier block of this conversation":        {"shown before", "An earlier block of this conversation shows it."},
	"repeats another":                                 {"repeats another", "Another line of the block says the same."},
	"a newer one says otherwise":                      {"superseded", "Something newer says otherwise, and that counts."},
	"reads like an instruction":                       {"an instruction", "It reads like an instruction to the model, and memory gives none."},
	"says nothing that can be shown":                  {"empty", "It says nothing that can be shown in a line."},
	"no room":                                         {"no room", "Others answered better, and the block was full."},
	"nothing else is spoken of than before":           {"nothing new", "The conversation still speaks of what an earlier block shows."},
	"too weak, as all that was found":                 {"too weak", "It did not answer the message well enough, and nothing else did."},
	"known of the person, where nothing else answers": {"not needed", "It is known of the person, and is shown only where nothing else answers."},
}

// verdictOf explains a verdict.
func verdictOf(word string) (label, says string) {
	if v, ok := verdicts[word]; ok {
		return v.Label, v.Says
	}
	return oneLine(word), ""
}

// scopes say what a memory is about.
var scopes = map[string]string{
	"session": "one conversation", "workspace": "a project", "user": "the person, everywhere", "agent": "one agent", "system": "a bot",
}

// scopeOf is a scope in words.
func scopeOf(scope string) string { return cmp.Or(scopes[scope], oneLine(scope)) }

// pinKinds are the kinds of texts that stand on cards, and what they are for.
var pinKinds = []struct{ Kind, Says string }{
	{"preference", "Preference: how you like things"},
	{"decision", "Decision: what was chosen"},
	{"procedure", "Procedure: how something is done"},
	{"terminology", "Terminology: what a word means"},
}

// kindOf is a kind of text in words.
func kindOf(kind string) string { return strings.ReplaceAll(oneLine(kind), "_", " ") }

// outcomes are the statuses of the X-Graphiti-Memory header.
var outcomes = map[string]string{
	"recalled": "memory shown", "empty": "no memory shown", "timeout": "the memory was too slow", "error": "the memory failed",
	"off": "memory off", "skipped": "not a person’s turn",
}

// outcomeOf is what memory did, in words.
func outcomeOf(status string) string { return cmp.Or(outcomes[status], oneLine(status), "not asked") }

// sources say where the facts of a block came from.
var sources = map[string]string{
	"live": "searched for this request", "cache": "from the cache", "stale": "from an old cache entry, refreshed behind",
	"local": "from what was said a moment ago", "sticky": "decided by an earlier request of the turn",
}

func sourceOf(source string) string { return cmp.Or(sources[source], oneLine(source)) }

// roles are who said something.
var roles = map[string]string{"user": "the person", "assistant": "the model", "system": "promoted"}

func roleOf(role string) string { return cmp.Or(roles[role], oneLine(role)) }

// apis are the formats of requests.
var apis = map[string]string{"chat": "Chat Completions", "responses": "Responses", "messages": "Messages", "gemini": "Gemini"}

func apiOf(api string) string { return cmp.Or(apis[api], oneLine(api), "unknown") }

// states say whether something is valid.
var states = map[string]string{"valid": "valid now", "superseded": "superseded", "expired": "withdrawn", "later": "valid later"}

func stateOf(state string) string { return cmp.Or(states[state], oneLine(state)) }

// notices say what was done, by the word that stands in the address of the page that
// shows it: nothing else of an address is shown.
var notices = map[string]string{
	"message-forgotten": "Forgotten. It is not recalled any more. Blocks that were sent already stay in their conversations.",
	"corrected":         "Corrected. From the next turn on only the new statement is recalled. Blocks that were sent already stay in their conversations.",
	"pinned":            "Pinned. New conversations begin with it.",
	"card":              "Taken off the card. What was said stays in the memory.",
	"forgotten":         "Forgotten. Nothing of it is recalled any more. Blocks that were sent already stay in their conversations.",
	"imported":          "Imported.",
	"retried":           "The dead letters are delivered again.",
	"dropped":           "The dead letters are deleted.",
	"accepted":          "Confirmed. From now on the person has their memory.",
}
