package gemini

import (
	"encoding/json"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// statuses are the names of HTTP statuses in Google's API.
var statuses = map[int]string{
	http.StatusBadRequest:         "INVALID_ARGUMENT",
	http.StatusUnauthorized:       "UNAUTHENTICATED",
	http.StatusForbidden:          "PERMISSION_DENIED",
	http.StatusNotFound:           "NOT_FOUND",
	http.StatusRequestTimeout:     "DEADLINE_EXCEEDED",
	http.StatusTooManyRequests:    "RESOURCE_EXHAUSTED",
	http.StatusNotImplemented:     "UNIMPLEMENTED",
	http.StatusBadGateway:         "UNAVAILABLE",
	http.StatusServiceUnavailable: "UNAVAILABLE",
	http.StatusGatewayTimeout:     "DEADLINE_EXCEEDED",
}

func (Dialect) Error(f dialect.Failure) []byte {
	type info struct {
		Type   string `json:"@type"`
		Reason string `json:"reason"`
		Domain string `json:"domain"`
	}
	var e struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Status  string `json:"status"`
			Details []info `json:"details,omitempty"`
		} `json:"error"`
	}
	e.Error.Code, e.Error.Message, e.Error.Status = f.Status, f.Message, statuses[f.Status]
	switch {
	case e.Error.Status != "":
	case f.Status < http.StatusInternalServerError:
		e.Error.Status = "FAILED_PRECONDITION"
	default:
		e.Error.Status = "INTERNAL"
	}
	if f.Code != "" {
		e.Error.Details = []info{{"type.googleapis.com/google.rpc.ErrorInfo", f.Code, "graphiti-proxy"}}
	}
	b, _ := json.Marshal(e) // strings and numbers only: cannot fail
	return b
}
