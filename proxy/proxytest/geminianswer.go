package proxytest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// geminiMethod returns the method in a path, such as generateContent, or "" for a path of
// another API.
func geminiMethod(path string) string {
	for _, prefix := range []string{"/v1beta/models/", "/v1/models/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			if _, method, ok := strings.Cut(rest, ":"); ok {
				return method
			}
		}
	}
	return ""
}

// ofGoogle reports whether a path belongs to Google's API.
func ofGoogle(path string) bool {
	return strings.HasPrefix(path, "/v1beta/") || geminiMethod(path) != ""
}

// googleStatus returns the name of an HTTP status in Google's API.
func googleStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	}
	return "INTERNAL"
}

// googleError returns an error in the shape of Google's API.
func googleError(status int, message string) map[string]any {
	return map[string]any{"error": map[string]any{"code": status, "message": message, "status": googleStatus(status)}}
}

func (p *Provider) gemini(w http.ResponseWriter, r *http.Request, rec *Received, f Faults, answer func(Input) Reply) {
	method := geminiMethod(r.URL.Path)
	if r.Header.Get("X-Goog-Api-Key") == "" && r.URL.Query().Get("key") == "" && r.Header.Get("Authorization") == "" {
		refuse(w, rec, http.StatusForbidden, "Method doesn't allow unregistered callers (callers without established identity).")
		return
	}
	switch method {
	case "generateContent", "streamGenerateContent":
	case "countTokens":
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": len(rec.Body) / 4})
		return
	case "embedContent":
		writeJSON(w, http.StatusOK, map[string]any{"embedding": map[string]any{"values": []float64{1}}})
		return
	default:
		refuse(w, rec, http.StatusNotFound, "models/… is not found for API version v1beta, or is not supported for "+method)
		return
	}
	c, req, wrong := readGemini(rec.Body)
	if wrong != "" {
		refuse(w, rec, http.StatusBadRequest, wrong)
		return
	}
	reply := answer(c)
	if req.schema != nil {
		b, _ := json.Marshal(example(req.schema)) // plain values: cannot fail
		reply = Reply{Text: string(b)}
	}
	chunks := geminiChunks(c, reply)
	if method == "streamGenerateContent" {
		streamGemini(w, r, f, c, chunks)
		return
	}
	var parts []any
	for _, c := range chunks {
		parts = append(parts, c.parts...)
	}
	writeJSON(w, http.StatusOK, geminiChunk{parts, true}.answer(c))
}

// geminiChunk is a piece of an answer.
type geminiChunk struct {
	parts []any
	last  bool
}

// geminiChunks returns the pieces of an answer. The last one has the signature.
func geminiChunks(c Input, reply Reply) (chunks []geminiChunk) {
	var signature string
	if reply.Thinks {
		signature = thoughtOf(c.Messages)
		chunks = append(chunks, geminiChunk{parts: []any{map[string]any{"text": "Hm.", "thought": true}}})
	}
	if reply.Tool != "" {
		call := map[string]any{"functionCall": map[string]any{"id": "call_1", "name": reply.Tool, "args": json.RawMessage(reply.Arguments)}}
		chunks = append(chunks, geminiChunk{parts: []any{call}})
	} else {
		for word := range strings.SplitAfterSeq(strings.TrimSuffix(reply.Text, " "), " ") {
			chunks = append(chunks, geminiChunk{parts: []any{map[string]any{"text": word}}})
		}
	}
	end := &chunks[len(chunks)-1]
	end.last = true
	if signature != "" {
		end.parts[0].(map[string]any)["thoughtSignature"] = signature //nolint:forcetypeassert // made above
	}
	return chunks
}

// answer returns the piece as the API sends it.
func (k geminiChunk) answer(c Input) map[string]any {
	candidate := map[string]any{"content": map[string]any{"parts": k.parts, "role": "model"}, "index": 0}
	if k.last {
		candidate["finishReason"] = "STOP"
	}
	return map[string]any{"candidates": []any{candidate}, "modelVersion": "stand-in", "responseId": "resp_1",
		"usageMetadata": map[string]any{"promptTokenCount": tokens(c), "candidatesTokenCount": 1, "totalTokenCount": tokens(c) + 1}}
}

// streamGemini sends the pieces as events, or as the items of an array.
func streamGemini(w http.ResponseWriter, r *http.Request, f Faults, c Input, chunks []geminiChunk) {
	s := streamer{w: w, r: r, f: f}
	failure, _ := json.Marshal(googleError(http.StatusInternalServerError, "a fault was asked for")) // plain values: cannot fail
	events := r.URL.Query().Get("alt") == "sse"
	if events {
		w.Header().Set("Content-Type", "text/event-stream")
		s.failure = "data: " + string(failure)
	} else {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		s.failure, s.plain = ",\r\n"+string(failure)+"]", true
	}
	w.WriteHeader(http.StatusOK)
	before := "["
	for _, k := range chunks {
		b, _ := json.Marshal(k.answer(c)) // plain values: cannot fail
		if events {
			s.step("data: " + string(b))
			continue
		}
		s.step(before + string(b))
		before = "\n,\r\n"
	}
	if !events {
		s.write("\n]\n")
	}
}
