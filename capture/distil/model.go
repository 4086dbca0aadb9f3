package distil

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	maxAnswer   = 256 << 10       // bytes
	callTimeout = 3 * time.Minute // local models are slow
)

// Model answers questions.
type Model interface {
	// Ask returns the model's answer to a question about a batch, and the tokens that it
	// reports, or 0. Its errors contain no text of the question or answer.
	Ask(ctx context.Context, b *graphiti.Batch, system, question string) (answer string, tokens int, err error)
}

// Endpoint is a Model behind OpenAI's Chat Completions API.
type Endpoint struct {
	url, model string
	key        func() string // nil for none
	client     http.Client
	plain      atomic.Bool // the server rejects schemas
}

// NewEndpoint returns the model with a name at a base URL, which ends in /v1. The key may be
// empty.
func NewEndpoint(url, model string, key func() string) *Endpoint {
	e := &Endpoint{url: strings.TrimSuffix(url, "/") + "/chat/completions", model: model, key: key}
	e.client.CheckRedirect = graphiti.NoRedirect
	return e
}

var errAnswer = errors.New("the answer is no chat completion")

// Ask implements Model. It asks again without a schema if the server rejects the request.
func (e *Endpoint) Ask(ctx context.Context, _ *graphiti.Batch, system, question string) (answer string, tokens int, err error) {
	answer, tokens, err = e.ask(ctx, system, question)
	var status *graphiti.StatusError
	if errors.As(err, &status) && (status.Code == http.StatusBadRequest || status.Code == http.StatusUnprocessableEntity) && e.plain.CompareAndSwap(false, true) {
		return e.ask(ctx, system, question)
	}
	return answer, tokens, err
}

func (e *Endpoint) ask(ctx context.Context, system, question string) (answer string, tokens int, err error) {
	body := map[string]any{"model": e.model, "stream": false, "messages": []map[string]string{
		{"role": "system", "content": system}, {"role": "user", "content": question},
	}}
	if !e.plain.Load() {
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "facts", "strict": true, "schema": answerSchema}}
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return "", 0, fmt.Errorf("ask for facts: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(sent))
	if err != nil {
		return "", 0, fmt.Errorf("ask for facts: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	graphiti.SetBearer(req.Header, e.key)
	resp, err := e.client.Do(req)
	if err != nil {
		return "", 0, fmt.Errorf("ask for facts: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", 0, fmt.Errorf("ask for facts: %w", &graphiti.StatusError{Code: resp.StatusCode})
	}
	var got struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
		Usage struct {
			Tokens int `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&got); err != nil || len(got.Choices) != 1 {
		return "", 0, fmt.Errorf("ask for facts: %w", errAnswer)
	}
	return got.Choices[0].Message.Content, got.Usage.Tokens, nil
}
