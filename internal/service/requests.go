package service

import (
	"context"
	"errors"
)

// RequestsRequest asks for the requests behind one.
type RequestsRequest struct {
	After int `json:"after,omitempty"` // its number; 0: from the oldest that is known
	Limit int `json:"limit,omitempty"`

	own string // whose: the owner of a caller who is no operator
}

// Passed are requests that passed, oldest first.
type Passed struct {
	Requests []LoggedRequest `json:"requests"`
	Last     int             `json:"last"` // the number of the newest
}

// LoggedRequest is one request that passed. Nothing that was said is in it.
type LoggedRequest struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Time   string `json:"time"`

	Client  string `json:"client,omitempty"`
	Version string `json:"version,omitempty"`
	Model   string `json:"model,omitempty"`
	API     string `json:"api,omitempty"` // chat, responses, messages, gemini; empty: no known one
	Path    string `json:"path"`
	Status  int    `json:"status"` // 0: there was no answer
	Stream  bool   `json:"stream,omitempty"`

	Memory string `json:"memory,omitempty"` // status, as in the X-Graphiti-Memory header
	Reason string `json:"reason,omitempty"`
	Source string `json:"source,omitempty"`
	Facts  int    `json:"facts,omitempty"`
	Chars  int    `json:"chars,omitempty"`
	Blocks int    `json:"blocks,omitempty"` // sent with the request, repeated ones included

	// How long the parts took, in milliseconds.
	MemoryMs   float64   `json:"memory_ms"`
	UpstreamMs float64   `json:"upstream_ms"` // from memory's end to the first byte of the answer
	TotalMs    float64   `json:"total_ms"`
	Searches   []Looking `json:"searches,omitempty"`

	InputTokens  int `json:"input_tokens,omitempty"` // as the provider said it; 0: it did not
	CachedTokens int `json:"cached_tokens,omitempty"`

	Conversation string `json:"conversation,omitempty"` // its hash, where the request belongs to one
	Turn         string `json:"turn,omitempty"`
	Person       string `json:"person,omitempty"` // whose memory it has, where several have one and they are proven
}

// Looking is one search of a request.
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
		if err == nil && in.own == "" { // which would mean everybody
			err = errOperators
		}
		return err
	},
}
