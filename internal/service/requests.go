package service

import (
	"context"
	"errors"
)

// RequestsRequest asks for the requests after one.
type RequestsRequest struct {
	After int `json:"after,omitempty"` // number of that request, or 0 for the whole log
	Limit int `json:"limit,omitempty"`

	own string // the caller's requests only, unless "": the key of a caller who is not an operator
}

// Passed is a part of the request log, oldest request first.
type Passed struct {
	Requests []LoggedRequest `json:"requests"`
	Last     int             `json:"last"` // number of the newest request
}

// LoggedRequest is one entry of the request log. It contains no conversation text.
type LoggedRequest struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Time   string `json:"time"`

	Client  string `json:"client,omitempty"`
	Version string `json:"version,omitempty"`
	Model   string `json:"model,omitempty"`
	API     string `json:"api,omitempty"` // chat, responses, messages or gemini; "" if unknown
	Path    string `json:"path"`
	Status  int    `json:"status"` // 0 without an answer
	Stream  bool   `json:"stream,omitempty"`

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
	MemoryMs   float64   `json:"memory_ms"`
	UpstreamMs float64   `json:"upstream_ms"` // from memory's end to the first byte of the answer
	TotalMs    float64   `json:"total_ms"`
	Searches   []Looking `json:"searches,omitempty"`

	InputTokens  int `json:"input_tokens,omitempty"` // from the provider, or 0
	CachedTokens int `json:"cached_tokens,omitempty"`

	Conversation string `json:"conversation,omitempty"` // hash of the conversation, or ""
	Turn         string `json:"turn,omitempty"`
	Person       string `json:"person,omitempty"` // verified owner of the memory, with several people
}

// Looking is a search of a request.
type Looking struct {
	Scope  string  `json:"scope"`
	Source string  `json:"source"` // live, cache or stale
	Found  int     `json:"found"`
	Ms     float64 `json:"ms"`
	Failed string  `json:"failed,omitempty"`
}

// Requests lists the newest requests that passed.
var Requests = Operation[RequestsRequest, Passed]{
	Spec:    Spec{Name: "requests", About: "The newest requests: client, model, status, outcome of memory, duration of each part", Reads: true, WithoutMemory: true},
	Default: RequestsRequest{Limit: 100},
	Run: func(_ context.Context, h *Host, in *RequestsRequest) (Passed, error) {
		p := Passed{Requests: []LoggedRequest{}, Last: in.After}
		switch {
		case in.After < 0:
			return p, invalid("after must be the number of a request, or 0")
		case CheckLimit(in.Limit) != nil:
			return p, CheckLimit(in.Limit)
		case h.Passed == nil:
			return p, errors.New("the request log exists only in a running proxy")
		}
		p.Requests = append(p.Requests, h.Passed(in.After, in.Limit, in.own)...)
		if n := len(p.Requests); n > 0 {
			p.Last = p.Requests[n-1].Number
		}
		return p, nil
	},
	Own: func(_ context.Context, h *Host, in *RequestsRequest, own Selector) (err error) {
		if h.Memory == nil {
			return ForbiddenError{errors.New("while memory is off, the callers of requests are unknown")}
		}
		_, in.own, err = h.Memory.asked(own)
		if err == nil && in.own == "" { // "" would select all people
			err = errOperators
		}
		return err
	},
}
