package responses

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Ask is a message by which a client asks for a response over a WebSocket.
type Ask struct {
	Lane     string // where the answer comes, where several come side by side
	Previous string // the response that it goes on with
	Turn     string // what Codex says of the turn, as JSON; it is a header where Codex posts
}

// maxTurn bounds what is said of a turn, in bytes.
const maxTurn = 16 << 10

// ReadAsk reads a client's message; ok is false where it asks for no response.
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

// Event is a message of the provider over a WebSocket that matters to an answer.
type Event struct {
	Lane   string
	Status int  // of HTTP, which it stands for
	Says   bool // it is for a Reader
	Last   bool // the answer has ended
}

// ReadEvent reads a provider's message; ok is false where it does not matter.
func ReadEvent(message []byte) (e Event, ok bool) {
	e = Event{Status: http.StatusOK, Says: true, Last: true}
	switch gjson.GetBytes(message, "type").Str {
	case "response.created":
		e.Says, e.Last = false, false
	case "response.output_item.done":
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

// AppendEvent appends a provider's message as a server-sent event. Line breaks
// in it are white space of JSON.
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

// SocketMatch is what a request over a WebSocket is, whatever the path of the
// connection.
func SocketMatch() dialect.Match { return dialect.Match{Use: dialect.UseTurn, Route: routes[0].path} }
