package graphiti

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestErrorsAboutTheMessageAreFinal checks that only an error about the message itself is final,
// and that other errors can be retried, with a remedy if one is known.
func TestErrorsAboutTheMessageAreFinal(t *testing.T) {
	for _, tc := range []struct {
		code   int
		detail string
		retry  bool
		remedy string // the beginning
	}{
		{422, "", false, "if Graphiti rejects all turns"},
		{413, "<html>", false, "if Graphiti rejects all turns"},
		{400, `{"detail":"Bad Request"}`, true, "check memory.endpoint, and any proxy in front"},
		{400, `{"error":{"message":"no such model"}}`, true, "check memory.endpoint, and any proxy in front"},
		{400, "<html>400 Request Header Or Cookie Too Large", true, "check memory.endpoint, and any proxy in front"},
		{401, "", true, "check memory.api_key"},
		{402, "", true, "check memory.endpoint, and any proxy in front"},
		{403, "", true, "check memory.api_key"},
		{404, "", true, "check memory.endpoint: the server there"},
		{405, "", true, "check memory.endpoint: the server there"},
		{407, "", true, "an HTTP proxy requires"},
		{409, "", true, "check memory.endpoint, and any proxy in front"},
		{415, "", true, "check memory.endpoint, and any proxy in front"},
		{429, "", true, ""},
		{301, "", true, "check memory.endpoint: it redirects to another"},
		{500, "", true, ""},
		{503, "", true, ""},
	} {
		err := fmt.Errorf("send messages: %w", &StatusError{Code: tc.code, Detail: tc.detail})
		if Retryable(err) != tc.retry {
			t.Errorf("%d %s: retryable %v, want %v", tc.code, tc.detail, !tc.retry, tc.retry)
		}
		if got := Remedy(err); !strings.HasPrefix(got, tc.remedy) || (got == "") != (tc.remedy == "") {
			t.Errorf("%d %s: remedy %q, want one that begins with %q", tc.code, tc.detail, got, tc.remedy)
		}
	}
	if Remedy(errors.New("connection refused")) != "" || !Retryable(errors.New("connection refused")) {
		t.Errorf("an error that is no answer: remedy %q, retryable %v; want none, true", Remedy(errors.New("connection refused")), Retryable(errors.New("connection refused")))
	}
}
