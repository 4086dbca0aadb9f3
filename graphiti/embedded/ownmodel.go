package embedded

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// Encoder computes the vectors of sentence.Model.
type Encoder interface {
	Encode(ctx context.Context, text string) ([]float32, error)
}

// encoderOf returns an encoder that runs in this process.
func encoderOf(m Encoder) encoder {
	e := encoder{model: sentence.Name, own: true, close: func() {}}
	e.embed = func(ctx context.Context, texts []string) ([][]int8, error) {
		out := make([][]int8, len(texts))
		for i, text := range texts {
			vec, err := m.Encode(ctx, text)
			if err != nil {
				return nil, err
			}
			out[i] = scaled(vec)
		}
		return out, nil
	}
	return e
}

// mayState reports whether a text may be a statement, by its gate.
func (e *Store) mayState(ctx context.Context, text string) bool {
	if !e.ownModel() {
		return true
	}
	vec, err := e.mean.question(ctx, text)
	return err != nil || e.states.Of(vec) >= 0
}

// ownModel reports whether the model of this program measures meaning.
func (e *Store) ownModel() bool { return e.mean != nil && e.mean.own && !e.mean.paused.Load() }
