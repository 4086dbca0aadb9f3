package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// Embedding names an endpoint that has OpenAI's embeddings API.
type Embedding struct {
	URL    string // base address; /embeddings is added to it
	Model  string
	APIKey func() string // returns a bearer token, or ""; nil sends none
}

const (
	maxEmbedded   = 8 << 10 // bytes of a text that are embedded
	maxDimensions = 4096
	maxEmbeddings = 64 << 20 // bytes of an answer
)

// encoder returns an encoder that asks the endpoint.
func (e *Embedding) encoder() encoder {
	client := &http.Client{CheckRedirect: graphiti.NoRedirect}
	return encoder{model: e.Model, embed: func(ctx context.Context, texts []string) ([][]int8, error) { return e.embed(ctx, client, texts) }}
}

// embed asks for the vectors of texts, scaled to signed bytes.
func (e *Embedding) embed(ctx context.Context, client *http.Client, texts []string) ([][]int8, error) {
	for i := range texts {
		texts[i] = graphiti.Truncate(texts[i], maxEmbedded)
	}
	body, err := json.Marshal(map[string]any{"model": e.Model, "input": texts})
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(e.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	graphiti.SetBearer(req.Header, e.APIKey)
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("embed: %w", &graphiti.StatusError{Code: resp.StatusCode})
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxEmbeddings)).Decode(&answer); err != nil || len(answer.Data) != len(texts) {
		return nil, errors.New("embed: the answer is not an embeddings response")
	}
	out := make([][]int8, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(out) || len(d.Embedding) == 0 || len(d.Embedding) > maxDimensions {
			return nil, errors.New("embed: the answer is not an embeddings response")
		}
		out[d.Index] = scaled(d.Embedding)
	}
	for _, v := range out {
		if v == nil {
			return nil, errors.New("embed: the answer omits a text")
		}
	}
	return out, nil
}

// scaled returns a vector of length 127 in the same direction.
func scaled[T float32 | float64](v []T) []int8 {
	length := 0.0
	for _, x := range v {
		length += float64(x) * float64(x)
	}
	length = math.Sqrt(length)
	out := make([]int8, len(v))
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return out
	}
	for i, x := range v {
		out[i] = int8(math.Round(127 * float64(x) / length)) //nolint:gosec // within 127
	}
	return out
}

// likeness returns the cosine of the angle between two vectors; 0 when they cannot be
// compared.
func likeness(a, b []int8) float64 {
	if len(a) > 0 && len(b) == 2*len(a) { // of a fact, see unreadMessage
		return max(likeness(a, b[:len(a)]), likeness(a, b[len(a):]))
	}
	if len(a) != len(b) {
		return 0
	}
	return float64(sentence.Dot(a, b)) / (127 * 127)
}
