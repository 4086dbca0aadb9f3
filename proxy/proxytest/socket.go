package proxytest

import (
	"encoding/json"
	"net/http"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// socket answers the Responses API over a WebSocket. It records each client message as a
// request with the method WS. Later messages may refer to answers, stored or
// not.
func (p *Provider) socket(w http.ResponseWriter, r *http.Request, opened *Received, answer func(Input) Reply) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		opened.Refused = err.Error()
		return
	}
	defer conn.Close()
	for {
		body, err := wsutil.ReadClientText(conn)
		if err != nil {
			return
		}
		rec := &Received{Method: "WS", Path: r.URL.Path, Headers: opened.Headers, Body: body, Left: make(chan struct{})}
		p.mu.Lock()
		p.requests = append(p.requests, rec)
		p.mu.Unlock()
		c, req, wrong := readResponses(body, p.conversation)
		if wrong == "" && req.Type != "response.create" {
			wrong = "unknown event " + req.Type
		}
		send := func(kind string, fields map[string]any) {
			fields["type"] = kind
			if req.Lane != nil {
				fields["stream_id"] = *req.Lane
			}
			b, _ := json.Marshal(fields)        // plain values: cannot fail
			_ = wsutil.WriteServerText(conn, b) // the client may have left
		}
		p.mu.Lock()
		status := p.faults.Status
		p.mu.Unlock()
		if status != 0 {
			rec.Refused = "a fault was asked for"
			send("error", map[string]any{"status": status, "error": map[string]any{"type": "invalid_request_error", "message": rec.Refused}})
			continue
		}
		if wrong != "" {
			rec.Refused = wrong
			send("error", map[string]any{"status": http.StatusBadRequest, "error": map[string]any{"type": "invalid_request_error", "message": wrong}})
			continue
		}
		whole := p.respond(c, answer(c), true)
		if req.Generate != nil && !*req.Generate {
			whole["output"] = []any{}
		}
		whole.stream(send)
	}
}
