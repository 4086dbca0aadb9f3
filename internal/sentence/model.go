package sentence

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
)

// Dimensions is the length of a vector.
const Dimensions = width + e5Width

// Name identifies the models: vectors of different ones cannot be compared.
const Name = "universal-sentence-encoder-multilingual-3+multilingual-e5-small"

// Notice attributes the models.
//
//go:embed NOTICE
var Notice string

// Shares of a vector. Vectors of E5 have a large part in common: without it, the first share is
// about 0.4, and the second 0.9.
const universalShare, e5Share = 0.19, 0.98

// Model joins two encoders. It is safe for concurrent use.
type Model struct {
	universal *universal
	e5        *e5
}

// ErrProcessor is the error of Load on a processor without AVX2 or NEON, which would take half a second
// for a question.
var ErrProcessor = errors.New("this processor is too slow for the models of meaning")

// Load returns the model.
func Load() (*Model, error) {
	if usable.long == nil {
		return nil, ErrProcessor
	}
	u, err := loadUniversal(file)
	if err != nil {
		return nil, fmt.Errorf("load the model of sentences: %w", err)
	}
	e, err := loadE5(e5File)
	if err != nil {
		return nil, fmt.Errorf("load the model of sentences: %w", err)
	}
	return &Model{u, e}, nil
}

// Name returns Name.
func (m *Model) Name() string { return Name }

// Encode returns the vector of a text, of length 1. It stops soon after the context ends.
func (m *Model) Encode(ctx context.Context, text string) ([]float32, error) {
	out, err := m.universal.encode(ctx, text)
	if err != nil {
		return nil, err
	}
	more, err := m.e5.encode(ctx, text)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i] *= universalShare
	}
	for _, v := range more {
		out = append(out, e5Share*v)
	}
	unit(out)
	return out, nil
}
