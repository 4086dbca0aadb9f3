package responses

import (
	"strings"
	"testing"
)

// TestReadAsk checks that ReadAsk accepts only requests for a response, and leaves out
// metadata that is too long or not a string.
func TestReadAsk(t *testing.T) {
	long := strings.Repeat("x", maxTurn)
	for _, tc := range []struct {
		name, message string
		want          Ask
		ok            bool
	}{
		{"all of it", `{"type":"response.create","stream_id":"s","previous_response_id":"resp_1","client_metadata":{"x-codex-turn-metadata":"{\"a\":1}"}}`, Ask{"s", "resp_1", `{"a":1}`}, true},
		{"nothing else", `{"type":"response.create"}`, Ask{}, true},
		{"metadata that is too long, or no string", `{"type":"response.create","client_metadata":{"x-codex-turn-metadata":"` + long + `"}}`, Ask{}, true},
		{"another message", `{"type":"response.cancel","stream_id":"s"}`, Ask{}, false},
		{"no JSON", `x`, Ask{}, false},
	} {
		if got, ok := ReadAsk([]byte(tc.message)); got != tc.want || ok != tc.ok {
			t.Errorf("%s: got %+v, %v; want %+v, %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
}

// TestReadEvent checks the Event of each message that belongs to an answer, and that
// AppendEvent writes a message as one line of data.
func TestReadEvent(t *testing.T) {
	for _, tc := range []struct {
		message string
		want    Event
		ok      bool
	}{
		{`{"type":"response.created","stream_id":"s"}`, Event{Lane: "s", Status: 200}, true},
		{`{"type":"response.output_item.done"}`, Event{Status: 200, Says: true}, true},
		{`{"type":"response.completed"}`, Event{Status: 200, Says: true, Last: true}, true},
		{`{"type":"response.incomplete"}`, Event{Status: 200, Says: true, Last: true}, true},
		{`{"type":"response.cancelled"}`, Event{Status: 200, Says: true, Last: true}, true},
		{`{"type":"response.failed"}`, Event{Status: 500, Says: true, Last: true}, true},
		{`{"type":"error"}`, Event{Status: 500, Says: true, Last: true}, true},
		{`{"type":"error","status":429}`, Event{Status: 429, Says: true, Last: true}, true},
		{`{"type":"response.output_text.delta"}`, Event{Status: 200, Says: true}, true},
		{`{"type":"response.output_text.done"}`, Event{}, false},
	} {
		if got, ok := ReadEvent([]byte(tc.message)); ok != tc.ok || ok && got != tc.want {
			t.Errorf("%s: got %+v, %v; want %+v, %v", tc.message, got, ok, tc.want, tc.ok)
		}
	}
	if got := string(AppendEvent(nil, []byte("{\"a\":\r\n1}"))); got != "data: {\"a\":  1}\n\n" {
		t.Errorf("got event %q, want one line of data", got)
	}
}
