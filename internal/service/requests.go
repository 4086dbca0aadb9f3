package service

import (
	"context"
	"errors"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// RequestsRequest asks for the requests after one.
type RequestsRequest struct {
	After int `json:"after,omitempty"` // number of that request, or 0 for the whole log
	Limit int `json:"limit,omitempty"`

	own string // the caller's requests only, unless "": the key of a caller who is not an operator
}

// Passed is a part of the request log, oldest request first.
type Passed struct {
	Requests []graphiti.LoggedRequest `json:"requests"`
	Last     int                      `json:"last"` // number of the newest request
}

// Requests lists the newest requests that passed.
var Requests = Operation[RequestsRequest, Passed]{
	Spec:    Spec{Name: "requests", About: "The newest requests: client, model, status, outcome of memory, duration of each part", Reads: true, WithoutMemory: true},
	Default: RequestsRequest{Limit: 100},
	Run: func(_ context.Context, h *Host, in *RequestsRequest) (Passed, error) {
		p := Passed{Requests: []graphiti.LoggedRequest{}, Last: in.After}
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
