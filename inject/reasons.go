package inject

import "slices"

// Explanation is a reason in words, for people. Its texts have no full stop.
type Explanation struct {
	Reason Reason
	Says   string // a sentence, in lower case
	Remedy string // empty if there is none
}

// Explanations lists all reasons. The response header, metrics, pages, commands and docs
// read this list.
var Explanations = []Explanation{
	{ReasonNone, "the memory was too slow or failed, or recall.enabled is false", ""},
	{ReasonTitle, "the client asked for a title", ""},
	{ReasonSummary, "the client asked for a summary of the conversation", ""},
	{ReasonProbe, "the client sent the request for itself", ""},
	{ReasonMachine, "a program wrote the newest message", ""},
	{ReasonSubagent, "a subagent sent the request: it recalls, but its turns are not stored", ""},
	{ReasonEncoding, "the body of the request is unreadable", ""},
	{ReasonTooLarge, "the body of the request exceeds a limit", "raise limits.inspect_bytes"},
	{ReasonNoUserMessage, "the request contains no person's message", ""},
	{ReasonNotPersisted, "the decision could not be stored, so there is no block", "check that data_dir is writable"},
	{ReasonConsent, "the configuration does not permit sending conversations to the memory", "set memory.consent to the address of the memory"},
	{ReasonOptOut, "the request or a setting switched memory off", ""},
	{ReasonUntrusted, "the sender is not confirmed, or workspace.trusted does not list the project, or there is no project", "confirm the person with graphiti-proxy registry accept, or add the project to workspace.trusted"},
	{ReasonNobody, "the caller is unknown: a gateway named no person, or a request in multi mode had no credential that a provider has accepted", ""},
	{ReasonPlace, "the client names no project, so it has no memory, or its conversation's only", "send the header X-Graphiti-Workspace, or report the client and its version"},
	{ReasonForgotten, "a forget emptied a block of this conversation, which gets no further blocks", "start a new conversation"},
	{ReasonAPI, "this model API has no memory", "let the client use Chat Completions, Responses, Messages or Gemini"},
	{ReasonRefused, "the provider refused the request with a new block (400 or 413) and received your own request instead", ""},
	{ReasonState, "a file in the data directory is unusable", "graphiti-proxy status names it"},
	{ReasonBusy, "other requests used up the budget for inspection", ""},
	{ReasonNothing, "the memory has no match, or the turn began without memory", "use words of the original message"},
	{ReasonWeak, "no match is strong enough", "be more specific; graphiti-proxy memory search --explain '<text>' shows the distance"},
	{ReasonOutdated, "no match is valid now", "state the current value"},
	{ReasonVisible, "the conversation already contains the matches", ""},
	{ReasonTold, "the client's own text, such as CLAUDE.md, is about the matches", ""},
	{ReasonWithheld, "proof mode withholds memory from this conversation, to measure its effect", "send the header X-Graphiti-Memory: on"},
	{ReasonRoutine, "the message asks nothing, for example \"continue\" or \"thanks\"", ""},
}

// Explain returns the explanation of a reason; ok is false for a reason of another version.
func (r Reason) Explain() (e Explanation, ok bool) {
	i := slices.IndexFunc(Explanations, func(e Explanation) bool { return e.Reason == r })
	if i < 0 {
		return Explanation{Reason: r}, false
	}
	return Explanations[i], true
}
