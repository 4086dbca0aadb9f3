package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// TrialResult is the result of one request.
type TrialResult struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model,omitempty"`
	Status   int    `json:"status,omitempty"`
	Took     int64  `json:"ms,omitempty"`
	Answer   string `json:"answer,omitempty"`
	Memory   string `json:"memory,omitempty"` // outcome of memory, from the proxy's header
	NoKey    bool   `json:"no_key,omitempty"`
	Error    string `json:"error,omitempty"`
	keys     string // variables for the key
}

// provider describes the API of an upstream.
type provider struct {
	name  string
	keys  []string          // names of the variables that may hold the key
	auth  map[string]string // headers, with KEY for the key
	list  string            // path of the models
	ids   string            // path of their names in the answer
	small []string          // parts of the names of cheap models, the cheapest first
	chat  string            // path of a request, with MODEL for the model
	body  string            // of that request, likewise
	said  string            // path of the text in the answer
}

const asked = `[{"role":"user","content":"Reply with the word OK and nothing else."}]`

var providers = []provider{
	{
		"openai", []string{"OPENAI_API_KEY"}, map[string]string{"Authorization": "Bearer KEY"}, "/v1/models", "data.#.id", []string{"nano", "mini", "small"},
		"/v1/chat/completions", `{"model":"MODEL","messages":` + asked + `}`, "choices.0.message.content",
	},
	{
		"anthropic", []string{"ANTHROPIC_API_KEY"}, map[string]string{"X-Api-Key": "KEY", "Anthropic-Version": "2023-06-01"}, "/v1/models", "data.#.id", []string{"haiku"},
		"/v1/messages", `{"model":"MODEL","max_tokens":16,"messages":` + asked + `}`, "content.0.text",
	},
	{
		"gemini", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, map[string]string{"X-Goog-Api-Key": "KEY"}, "/v1beta/models", "models.#.name", []string{"flash-lite", "flash"},
		"/v1beta/models/MODEL:generateContent", `{"contents":[{"role":"user","parts":[{"text":"Reply with the word OK and nothing else."}]}]}`, "candidates.0.content.parts.0.text",
	},
}

// TrialOptions are the options of RunTrial.
type TrialOptions struct {
	Base   string // address of the proxy, such as http://127.0.0.1:8787
	Client *http.Client
	Key    func(variable string) string // returns "" without a key
	Model  string                       // empty for a cheap model from the provider's list
	Only   string                       // one upstream; empty for all
}

// TrialUpstreams returns the names of the upstreams that can be tried.
func TrialUpstreams() (names []string) {
	for _, p := range providers {
		names = append(names, p.name)
	}
	return names
}

const (
	timeout   = time.Minute // of one request
	maxAnswer = 8 << 20
	maxShown  = 200 // characters of an answer, or of a refusal
)

// RunTrial tries each upstream with a key. The memory stores none of the requests.
func RunTrial(ctx context.Context, o TrialOptions) (all []TrialResult) {
	for _, p := range providers {
		if o.Only == "" || o.Only == p.name {
			all = append(all, p.try(ctx, &o))
		}
	}
	return all
}

func (p *provider) try(ctx context.Context, o *TrialOptions) TrialResult {
	r := TrialResult{Upstream: p.name, Model: o.Model, keys: strings.Join(p.keys, " or ")}
	key := ""
	for _, name := range p.keys {
		key = cmp.Or(key, o.Key(name))
	}
	if key == "" {
		r.NoKey = true
		return r
	}
	began := time.Now()
	err := p.ask(ctx, o, key, &r)
	r.Took = time.Since(began).Milliseconds()
	if err != nil {
		r.Error = strings.ReplaceAll(err.Error(), key, "***")
	}
	return r
}

func (p *provider) ask(ctx context.Context, o *TrialOptions, key string, r *TrialResult) error {
	if r.Model == "" {
		body, err := p.send(ctx, o, key, p.list, nil, r)
		if err != nil {
			return err
		}
		if r.Model = p.cheap(gjson.GetBytes(body, p.ids)); r.Model == "" {
			return errors.New("the provider lists no models; name one with --model")
		}
	}
	model := strings.TrimPrefix(r.Model, "models/")
	quoted, _ := json.Marshal(model) // a text
	body, err := p.send(ctx, o, key, strings.ReplaceAll(p.chat, "MODEL", url.PathEscape(model)), []byte(strings.ReplaceAll(p.body, `"MODEL"`, string(quoted))), r)
	if err != nil {
		return err
	}
	if r.Answer = graphiti.OneLine(gjson.GetBytes(body, p.said).String(), maxShown); r.Answer == "" {
		return errors.New("the answer holds no text")
	}
	return nil
}

func (p *provider) cheap(list gjson.Result) string {
	var names []string
	for _, n := range list.Array() {
		names = append(names, n.String())
	}
	// The names of other models than chat models have another word, too.
	others := []string{"embed", "audio", "realtime", "transcribe", "tts", "image", "search", "moderation", "whisper", "live"}
	usable := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.ContainsFunc(others, func(o string) bool { return strings.Contains(n, o) })
	})
	for _, small := range p.small {
		for _, n := range usable {
			if strings.Contains(n, small) {
				return n
			}
		}
	}
	if len(usable) > 0 {
		return usable[0]
	}
	return ""
}

// send makes one request: a GET without a body.
func (p *provider) send(ctx context.Context, o *TrialOptions, key, path string, body []byte, r *TrialResult) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, o.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Graphiti-Memory", "off")
	for name, value := range p.auth {
		req.Header.Set(name, strings.ReplaceAll(value, "KEY", key))
	}
	resp, err := o.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("the proxy does not answer: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	r.Status = resp.StatusCode
	if m := resp.Header.Get("X-Graphiti-Memory"); m != "" {
		r.Memory = m
	}
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		return answer, nil
	}
	why := graphiti.OneLine(gjson.GetBytes(answer, "error.message").String(), maxShown)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		why = cmp.Or(why, "no reason given") + "; the provider refuses the key in " + r.keys
	case http.StatusNotFound:
		why = cmp.Or(why, "not found") + "; look at upstream." + p.name + ", which stands before " + path
	}
	return nil, fmt.Errorf("%d for %s %s: %s", resp.StatusCode, method, path, cmp.Or(why, "no reason given"))
}

// PrintTrial prints results for people.
func PrintTrial(w io.Writer, all []TrialResult) {
	var t terminal.Table
	for _, r := range all {
		switch {
		case r.NoKey:
			t.Row("- "+r.Upstream, "not tried: "+r.keys+" is not set")
		case r.Error != "":
			t.Row("✗ "+r.Upstream, r.Error)
		default:
			t.Row("✓ "+r.Upstream, fmt.Sprintf("%s answered in %d ms: %s", r.Model, r.Took, r.Answer))
		}
	}
	t.Print(w)
}
