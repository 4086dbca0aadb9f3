package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// weekModel replaces three models: one answers a week's conversations, one distils their facts, and
// one embeds.
type weekModel struct {
	url     string
	server  *http.Server
	encoder embedded.Encoder

	mu    sync.Mutex // protects the fields below
	turn  *weekTurn  // the turn to answer
	body  []byte     // of the last request of a conversation
	facts []*weekFact
	talks map[*weekFact]*weekTalk
	told  map[*weekFact]bool
	keys  int // number of keys until now
	calls int // requests for facts
}

func startWeekModel(by embedded.Encoder) (*weekModel, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &weekModel{url: "http://" + ln.Addr().String(), encoder: by, talks: make(map[*weekFact]*weekTalk), told: make(map[*weekFact]bool)}
	m.server = &http.Server{Handler: http.HandlerFunc(m.serve)} //nolint:gosec // our own clients only
	// Ends when the server is closed.
	go func() { _ = m.server.Serve(ln) }()
	return m, nil
}

func (m *weekModel) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var asked struct {
		Model  string
		Stream bool
		Tools  []struct{ Function struct{ Name string } }
		Input  json.RawMessage
	}
	_ = json.Unmarshal(body, &asked) // a GET has no body
	switch {
	case r.Method == http.MethodGet:
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	case strings.HasSuffix(r.URL.Path, "/embeddings"):
		if err := m.embed(w, asked.Input); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	case asked.Model == "distiller":
		fmt.Fprint(w, answerOf(r.URL.Path, m.distil(body)))
	case asked.Model == "memory":
		var tools []string
		for _, t := range asked.Tools {
			tools = append(tools, t.Function.Name)
		}
		fmt.Fprint(w, m.extract(body, tools))
	case asked.Stream:
		w.Header().Set("Content-Type", "text/event-stream")
		delta := object{"role": "assistant", "content": m.answer(body)}
		fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", mustJSON(delta))
		fmt.Fprint(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	default:
		fmt.Fprint(w, answerOf(r.URL.Path, m.answer(body)))
	}
}

// answer answers a question only if the request holds the answer, or an outdated one.
func (m *weekModel) answer(body []byte) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.body = body
	if m.turn == nil || m.turn.Kind != "ask" {
		if m.turn == nil {
			return "ok"
		}
		return m.turn.Answer
	}
	var text strings.Builder
	for _, s := range textsOf(body) {
		text.WriteString(s.text + "\n")
	}
	for _, words := range [][]string{m.turn.Expect, m.turn.Old} {
		for _, word := range words {
			if holds(text.String(), []string{word}) {
				return "It is " + word + "."
			}
		}
	}
	return "I do not know."
}

// learn lets the model tell the facts of a conversation from now on.
func (m *weekModel) learn(talk *weekTalk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range talk.Facts {
		f := &talk.Facts[i]
		m.facts = append(m.facts, f)
		m.talks[f] = talk
	}
}

// sourcesOf returns the messages of a fact, in short.
func (m *weekModel) sourcesOf(f *weekFact) (list []string) {
	for _, s := range f.Sources {
		turn := &m.talks[f].Turns[int(s[0].(float64))]
		text := turn.User
		if s[1] == "assistant" {
			text = turn.Answer
		}
		list = append(list, short(text))
	}
	return list
}

var marks = regexp.MustCompile(`[\s/\\]+`)

// short returns the beginning of a text, to find it again in a request.
func short(text string) string {
	r := []rune(marks.ReplaceAllString(comparable(text), " "))
	return string(r[:min(len(r), 80)])
}

// untold returns new facts, if a text has all their messages.
func (m *weekModel) untold(text string) (list []*weekFact) {
	text = marks.ReplaceAllString(comparable(text), " ")
next:
	for _, f := range m.facts {
		if m.told[f] {
			continue
		}
		for _, s := range m.sourcesOf(f) {
			if !strings.Contains(text, s) {
				continue next
			}
		}
		m.told[f] = true
		list = append(list, f)
	}
	return list
}

// extract tells facts by calls of a tool, each with a content, as LangMem wants them.
func (m *weekModel) extract(body []byte, tools []string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	var text strings.Builder
	for _, s := range textsOf(body) {
		text.WriteString(s.text + "\n")
	}
	var calls []object
	if len(tools) > 0 {
		for i, f := range m.untold(text.String()) {
			calls = append(calls, object{"id": fmt.Sprintf("call_%d_%d", m.calls, i), "type": "function", "function": object{"name": tools[0], "arguments": string(mustJSON(object{"content": f.Text}))}})
		}
	}
	if len(calls) == 0 {
		return answerOf("/chat/completions", "Nothing to store.")
	}
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":"memory","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, mustJSON(calls))
}

var (
	knownFact  = regexp.MustCompile(`^(F\d+): (.+)$`)
	newMessage = regexp.MustCompile(`^(M\d+) (?:user|assistant) \d{4}-\d\d-\d\d: ?(.*)$`)
)

// distil tells facts as docs/facts.md describes, with half of their keys.
func (m *weekModel) distil(body []byte) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	list := textsOf(body)
	known, messages := make(map[string]string), make(map[string]string)
	var order []string
	var text strings.Builder
	for line := range strings.Lines(list[len(list)-1].text) {
		line = strings.TrimSuffix(line, "\n")
		if f := knownFact.FindStringSubmatch(line); f != nil {
			known[comparable(f[2])] = f[1]
		} else if n := newMessage.FindStringSubmatch(line); n != nil {
			messages[n[1]] = marks.ReplaceAllString(comparable(n[2]), " ")
			order = append(order, n[1])
			text.WriteString(n[2] + "\n")
		}
	}
	facts := []object{}
	for _, f := range m.untold(text.String()) {
		keys, sources, replaces := []string{}, []string{}, []string{}
		for _, k := range f.Keys {
			if m.keys++; m.keys*37%100 < 50 {
				keys = append(keys, k)
			}
		}
		for _, s := range m.sourcesOf(f) {
			for _, id := range order {
				if strings.Contains(messages[id], s) {
					sources = append(sources, id)
					break
				}
			}
		}
		for _, old := range f.Replaces {
			if id, ok := known[comparable(old)]; ok {
				replaces = append(replaces, id)
			}
		}
		facts = append(facts, object{"text": f.Text, "kind": f.Kind, "about": f.About, "keys": keys, "sources": sources, "replaces": replaces, "valid_from": nil})
	}
	return string(mustJSON(object{"facts": facts}))
}

// embed answers with vectors of the program's own encoder.
func (m *weekModel) embed(w io.Writer, input json.RawMessage) error {
	var one string
	var texts []string
	if json.Unmarshal(input, &one) == nil {
		texts = []string{one}
	} else if err := json.Unmarshal(input, &texts); err != nil {
		return err
	}
	var data []object
	for i, text := range texts {
		v, err := m.encoder.Encode(context.Background(), text)
		if err != nil {
			return err
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": v})
	}
	_, err := w.Write(mustJSON(object{"object": "list", "model": "embedding", "data": data, "usage": object{"prompt_tokens": 1, "total_tokens": 1}}))
	return err
}
