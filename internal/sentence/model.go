package sentence

import (
	"context"
	_ "embed"
	"fmt"
)

// Dimensions is the length of the longest vectors.
const Dimensions = width + e5Width

// Names of the models: vectors of different ones cannot be compared.
const (
	Name      = "universal-sentence-encoder-multilingual-3+multilingual-e5-small"
	SmallName = "universal-sentence-encoder-multilingual-3"
)

// Notice attributes the models.
//
//go:embed NOTICE
var Notice string

// Shares of a vector. Vectors of E5 have a large part in common: without it, the first share is
// about 0.4, and the second 0.9.
const universalShare, e5Share = 0.19, 0.98

// Model is the encoder in the program. It is safe for concurrent use.
type Model struct {
	universal *universal
	e5        *e5 // nil in a small model
}

// Load returns the model that suits this processor: E5 needs instructions for many values at once,
// or a question would take half a second.
func Load() (*Model, error) { return load(hasKernel()) }

// LoadSmall returns the model for other processors.
func LoadSmall() (*Model, error) { return load(false) }

func load(large bool) (m *Model, err error) {
	m = &Model{}
	if m.universal, err = loadUniversal(file); err == nil && large {
		m.e5, err = loadE5(e5File)
	}
	if err != nil {
		return nil, fmt.Errorf("load the model of sentences: %w", err)
	}
	return m, nil
}

// Name returns Name or SmallName.
func (m *Model) Name() string {
	if m.e5 == nil {
		return SmallName
	}
	return Name
}

// Encode returns the vector of a text, of length 1. It stops soon after the context ends.
func (m *Model) Encode(ctx context.Context, text string) ([]float32, error) {
	out, err := m.universal.encode(ctx, text)
	if err != nil || m.e5 == nil {
		return out, err
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
