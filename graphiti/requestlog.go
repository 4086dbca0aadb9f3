package graphiti

// LoggedRequest is one entry of the request log. It contains no conversation text.
type LoggedRequest struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Time   string `json:"time"`

	Client   string `json:"client,omitempty"`
	Upstream string `json:"upstream,omitempty"` // its name
	Version  string `json:"version,omitempty"`
	Model    string `json:"model,omitempty"`
	API      string `json:"api,omitempty"` // chat, responses, messages or gemini; "" if unknown
	Path     string `json:"path"`
	Status   int    `json:"status"` // 0 without an answer
	Stream   bool   `json:"stream,omitempty"`

	Memory string `json:"memory,omitempty"` // status, as in the X-Graphiti-Memory header
	Reason string `json:"reason,omitempty"`
	Source string `json:"source,omitempty"`
	Fate   string `json:"fate,omitempty"` // of the newest message; in a tool round, of its turn's message
	Cause  string `json:"fate_reason,omitempty"`

	Earlier string `json:"earlier_fates,omitempty"` // number of its other new messages, by their fates

	Facts  int `json:"facts,omitempty"`
	Chars  int `json:"chars,omitempty"`
	Blocks int `json:"blocks,omitempty"` // blocks in the sent request, including repeated ones

	// Durations in milliseconds.
	MemoryMs   float64        `json:"memory_ms"`
	AddedMs    float64        `json:"added_ms"`    // from the whole request to memory's end
	UpstreamMs float64        `json:"upstream_ms"` // from memory's end to the first byte of the answer
	TotalMs    float64        `json:"total_ms"`
	Searches   []LoggedSearch `json:"searches,omitempty"`

	InputTokens  int `json:"input_tokens,omitempty"` // from the provider, or 0
	CachedTokens int `json:"cached_tokens,omitempty"`
	OutputTokens int `json:"output_tokens,omitempty"`

	Conversation string `json:"conversation,omitempty"` // hash of the conversation, or ""
	Turn         string `json:"turn,omitempty"`
	Person       string `json:"person,omitempty"` // verified owner of the memory, with several people; or its hash
	Tenant       string `json:"tenant,omitempty"` // hash of the credential or the person, with several people
}

// LoggedSearch is a search of a request.
type LoggedSearch struct {
	Scope  string  `json:"scope"`
	Source string  `json:"source"` // live, cache or stale
	Found  int     `json:"found"`
	Ms     float64 `json:"ms"`
	Failed string  `json:"failed,omitempty"`
}
