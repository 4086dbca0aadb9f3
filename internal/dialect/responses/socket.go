package responses

import (
	"net/http"

	"github.com/tidwall/gjson"
)

// Ask is a client's request for a response over a WebSocket.
type Ask struct {
	Lane     string // the id of the answer's stream, if several run in parallel
	Previous string // the id of the response that it continues
	Turn     string // Codex's metadata about the turn, as JSON; in a POST it is a header
}

// maxTurn bounds Ask.Turn, in bytes.
const maxTurn = 16 << 10

// ReadAsk reads a client's message; ok is false if it asks for no response.
func ReadAsk(message []byte) (a Ask, ok bool) {
	if gjson.GetBytes(message, "type").Str != "response.create" {
		return a, false
	}
	a.Lane = gjson.GetBytes(message, "stream_id").Str
	a.Previous = gjson.GetBytes(message, "previous_response_id").Str
	if turn := gjson.GetBytes(message, "client_metadata.x-codex-turn-metadata"); turn.Type == gjson.String && len(turn.Raw) <= maxTurn {
		a.Turn = turn.Str
	}
	return a, true
}

// Event is a provider's message over a WebSocket that belongs to an answer.
type Event struct {
	Lane   string // as in Ask
	Status int    // the corresponding HTTP status
	Says   bool   // it is for a Reader
	Last   bool   // it ends the answer
}

// ReadEvent reads a provider's message; ok is false if it belongs to no answer.
func ReadEvent(message []byte) (e Event, ok bool) {
	e = Event{Status: http.StatusOK, Says: true, Last: true}
	switch gjson.GetBytes(message, "type").Str {
	case "response.created":
		e.Says, e.Last = false, false
	case "response.output_item.done", "response.output_text.delta":
		e.Last = false
	case "response.completed", "response.incomplete", "response.cancelled":
	case "response.failed":
		e.Status = http.StatusInternalServerError
	case "error":
		e.Status = http.StatusInternalServerError
		if status := int(gjson.GetBytes(message, "status").Int()); status > 0 {
			e.Status = status
		}
	default:
		return e, false
	}
	e.Lane = gjson.GetBytes(message, "stream_id").Str
	return e, true
}

// AppendEvent appends a provider's message as a server-sent event. Its line breaks,
// white space of JSON, become spaces.
func AppendEvent(dst, message []byte) []byte {
	dst = append(dst, "data: "...)
	from := len(dst)
	dst = append(dst, message...)
	for i, b := range dst[from:] {
		if b == '\n' || b == '\r' {
			dst[from+i] = ' '
		}
	}
	return append(dst, "\n\n"...)
}
