package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/messages"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/responses"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/sse"
)

// stream writes events as servers do: the name and the data on a line each.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		b.WriteString("event: " + kind + "\ndata: " + e + "\n\n")
	}
	return b.String()
}

// readStream gives a stream to a reader in pieces of every size.
func readStream(t *testing.T, d dialect.Dialect, s string) dialect.Answer {
	t.Helper()
	var first dialect.Answer
	for _, size := range []int{len(s) + 1, 1, 7, 64} {
		r := d.NewReader()
		events := sse.Reader{Emit: r.Event}
		for rest := s; rest != ""; {
			n := min(size, len(rest))
			events.Feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		events.End()
		a := r.Answer()
		if size > len(s) {
			first = a
		} else if a != first {
			t.Errorf("in pieces of %d: %+v, else %+v", size, a, first)
		}
	}
	return first
}

const (
	respCreated = `{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}`
	respDelta   = `{"type":"response.output_text.delta","item_id":"m","delta":"Hello"}`
	respItem    = `{"type":"response.output_item.done","item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hello wörld"}]}}`
	respThought = `{"type":"response.output_item.done","item":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}`
	respAside   = `{"type":"response.output_item.done","item":{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"Let me look."}]}}`
	respCall    = `{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}"}}`
	respSearch  = `{"type":"response.output_item.done","item":{"type":"web_search_call","status":"completed"}}`
	respDone    = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"reasoning"},{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hello wörld"}]}]}}`
	respEmpty   = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`
	respTools   = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"function_call","name":"f"}]}}`
)

func TestResponsesAnswers(t *testing.T) {
	for _, tc := range []struct {
		name, stream string
		want         dialect.Answer
	}{
		{"whole in its last event", stream(respCreated, respDelta, respItem, respDone), dialect.Answer{Text: "Hello wörld", Item: "m", End: dialect.EndStop, ID: "resp_1"}},
		{"last event empty, as ChatGPT's backend has it", stream(respCreated, respThought, respAside, respItem, respEmpty), dialect.Answer{Text: "Hello wörld", Item: "m", End: dialect.EndStop, ID: "resp_1"}},
		{"a call of the client's", stream(respCreated, respCall, respTools), dialect.Answer{Text: "", End: dialect.EndToolCalls, ID: "resp_1"}},
		{"a call, last event empty", stream(respCall, respEmpty), dialect.Answer{Text: "", End: dialect.EndToolCalls, ID: "resp_1"}},
		{"a search that the provider makes", stream(respSearch, respItem, respEmpty), dialect.Answer{Text: "Hello wörld", Item: "m", End: dialect.EndStop, ID: "resp_1"}},
		{"incomplete", stream(respItem, `{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","output":[]}}`), dialect.Answer{End: dialect.EndError}},
		{"failed", stream(respItem, `{"type":"response.failed","response":{"id":"resp_1","status":"failed"}}`), dialect.Answer{End: dialect.EndError}},
		{"error", stream(respItem, `{"type":"error","message":"no"}`), dialect.Answer{End: dialect.EndError}},
		{"cut off", stream(respCreated, respDelta, respItem), dialect.Answer{Text: "Hello wörld", Item: "m", End: dialect.EndUnknown}},
		{"in the background", stream(`{"type":"response.completed","response":{"id":"r","status":"queued","output":[]}}`), dialect.Answer{ID: "r"}},
	} {
		if diff := cmp.Diff(tc.want, readStream(t, responses.Dialect{}, tc.stream)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	r := responses.Dialect{}.NewReader()
	r.Body([]byte(`{"id":"resp_2","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"},{"type":"output_text","text":"c"}]}]}`))
	if diff := cmp.Diff(dialect.Answer{Text: "a\nc", End: dialect.EndStop, ID: "resp_2"}, r.Answer()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = responses.Dialect{}.NewReader()
	r.Body([]byte(`{"error":{"message":"no"}}`))
	if r.Answer().End != dialect.EndError {
		t.Errorf("%+v", r.Answer())
	}
}

const (
	msgStart    = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`
	msgThink    = `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`
	msgThought  = `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`
	msgText     = `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`
	msgHello    = `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello "}}`
	msgWorld    = `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"wörld"}}`
	msgCite     = `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{}}}`
	msgBlockEnd = `{"type":"content_block_stop","index":1}`
	msgTool     = `{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`
	msgServer   = `{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"t","name":"web_search","input":{}}}`
	msgPing     = `{"type":"ping"}`
	msgStop     = `{"type":"message_stop"}`
)

func msgEnd(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":0}}`
}

func TestMessagesAnswers(t *testing.T) {
	text := []string{msgStart, msgPing, msgThink, msgThought, msgText, msgHello, msgCite, msgWorld, msgBlockEnd}
	with := func(more ...string) string { return stream(append(append([]string(nil), text...), more...)...) }
	for _, tc := range []struct {
		name, stream string
		want         dialect.Answer
	}{
		{"end_turn", with(msgEnd("end_turn"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndStop}},
		{"stop_sequence", with(msgEnd("stop_sequence"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndStop}},
		{"max_tokens", with(msgEnd("max_tokens"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndLength}},
		{"tool_use", with(msgEnd("tool_use"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndToolCalls}},
		{"a call that ends like a turn", with(msgTool, msgEnd("end_turn"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndToolCalls}},
		{"a call and a stop sequence", with(msgTool, msgEnd("stop_sequence"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndToolCalls}},
		{"a call that the provider carries out", with(msgServer, msgEnd("end_turn"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndStop}},
		{"pause_turn", with(msgEnd("pause_turn"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndToolCalls}},
		{"refusal", with(msgEnd("refusal"), msgStop), dialect.Answer{Text: "Hello wörld", End: dialect.EndFilter}},
		{"error in mid-stream", with(`{"type":"error","error":{"type":"overloaded_error"}}`), dialect.Answer{End: dialect.EndError}},
		{"cut off", with(), dialect.Answer{Text: "Hello wörld", End: dialect.EndUnknown}},
		{"cut off before its end", with(msgEnd("end_turn")), dialect.Answer{Text: "Hello wörld", End: dialect.EndUnknown}},
		{"two blocks", with(msgText, msgHello, msgBlockEnd, msgEnd("end_turn"), msgStop), dialect.Answer{Text: "Hello wörld\nHello", End: dialect.EndStop}},
	} {
		if diff := cmp.Diff(tc.want, readStream(t, messages.Dialect{}, tc.stream)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	r := messages.Dialect{}.NewReader()
	r.Body([]byte(`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`))
	if diff := cmp.Diff(dialect.Answer{Text: "Hi", End: dialect.EndStop}, r.Answer()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = messages.Dialect{}.NewReader()
	r.Body([]byte(`{"type":"error","error":{"type":"invalid_request_error"}}`))
	if r.Answer().End != dialect.EndError {
		t.Errorf("%+v", r.Answer())
	}
}
