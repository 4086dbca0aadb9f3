package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// TrialResult is the result of one request.
type TrialResult struct {
	Upstream string `json:"upstream"`
	Status   int    `json:"status,omitempty"`
	Took     int64  `json:"ms,omitempty"`
	Models   int    `json:"models,omitempty"` // in the answer
	NoKey    bool   `json:"no_key,omitempty"`
	Error    string `json:"error,omitempty"`
	keys     string // variables for the key
}

// provider describes the list of models of an upstream.
type provider struct {
	name string
	keys []string          // names of the variables that may hold the key
	auth map[string]string // headers, with KEY for the key
	path string            // of the list
	list string            // in the answer
}

var providers = []provider{
	{"openai", []string{"OPENAI_API_KEY"}, map[string]string{"Authorization": "Bearer KEY"}, "/v1/models", "data.#"},
	{"anthropic", []string{"ANTHROPIC_API_KEY"}, map[string]string{"X-Api-Key": "KEY", "Anthropic-Version": "2023-06-01"}, "/v1/models", "data.#"},
	{"gemini", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, map[string]string{"X-Goog-Api-Key": "KEY"}, "/v1beta/models", "models.#"},
}

// TrialOptions are the options of RunTrial.
type TrialOptions struct {
	Base   string // address of the proxy, such as http://127.0.0.1:8787
	Client *http.Client
	Key    func(variable string) string // returns "" without a key
}

const (
	timeout   = time.Minute // of one request
	maxAnswer = 8 << 20
	maxShown  = 200 // characters of a refusal
)

// RunTrial asks each upstream with a key for its models.
func RunTrial(ctx context.Context, o TrialOptions) (all []TrialResult) {
	for _, p := range providers {
		r := TrialResult{Upstream: p.name, keys: strings.Join(p.keys, " or ")}
		key := ""
		for _, name := range p.keys {
			key = cmp.Or(key, o.Key(name))
		}
		if r.NoKey = key == ""; !r.NoKey {
			began := time.Now()
			if err := p.ask(ctx, &o, key, &r); err != nil {
				r.Error = strings.ReplaceAll(err.Error(), key, "***")
			}
			r.Took = time.Since(began).Milliseconds()
		}
		all = append(all, r)
	}
	return all
}

func (p *provider) ask(ctx context.Context, o *TrialOptions, key string, r *TrialResult) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.Base+p.path, nil)
	if err != nil {
		return err
	}
	for name, value := range p.auth {
		req.Header.Set(name, strings.ReplaceAll(value, "KEY", key))
	}
	resp, err := o.Client.Do(req)
	if err != nil {
		return fmt.Errorf("the proxy does not answer: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if r.Status = resp.StatusCode; err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		r.Models = int(gjson.GetBytes(answer, p.list).Int())
		return nil
	}
	why := graphiti.OneLine(gjson.GetBytes(answer, "error.message").String(), maxShown)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		why = cmp.Or(why, "no reason given") + "; the provider refuses the key in " + r.keys
	case http.StatusNotFound:
		why = cmp.Or(why, "not found") + "; look at upstream." + p.name + ", which stands before " + p.path
	}
	return fmt.Errorf("%d for %s: %s", resp.StatusCode, p.path, cmp.Or(why, "no reason given"))
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
			t.Row("✓ "+r.Upstream, fmt.Sprintf("%s in %d ms", terminal.Count(r.Models, "model"), r.Took))
		}
	}
	t.Print(w)
}
