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

// Usage counts tokens of requests and answers.
type Usage struct {
	Input  int64 `json:"input,omitempty"` // reported by the provider, including Cached
	Cached int64 `json:"cached,omitempty"`
	Output int64 `json:"output,omitempty"`

	// Estimates of tokens of blocks, which are a part of Input.
	New      int64 `json:"new,omitempty"`      // in requests that show a block for the first time
	Repeated int64 `json:"repeated,omitempty"` // in all later requests
}

// Add adds the counts of o.
func (u *Usage) Add(o *Usage) {
	u.Input, u.Cached, u.Output, u.New, u.Repeated = u.Input+o.Input, u.Cached+o.Cached, u.Output+o.Output, u.New+o.New, u.Repeated+o.Repeated
}

// CachedBlocks estimates the part of Repeated that providers read from their prompt caches: the
// same share as of all other input. It is a lower bound, because the newest messages are never
// cached.
func (u *Usage) CachedBlocks() float64 {
	if u.Input <= u.New {
		return 0
	}
	return float64(u.Repeated) * min(1, float64(u.Cached)/float64(u.Input-u.New))
}

// LoggedSearch is a search of a request.
type LoggedSearch struct {
	Scope  string  `json:"scope"`
	Source string  `json:"source"` // live
	Found  int     `json:"found"`
	Ms     float64 `json:"ms"`
	Failed string  `json:"failed,omitempty"`
}
