package embedded

import "context"

// Encoder is a model of package sentence. It is safe for concurrent use.
type Encoder interface {
	Name() string // of the model and its form
	Encode(ctx context.Context, text string) ([]float32, error)
}

// encoderOf returns an encoder that runs in this process, with the numbers fitted to it.
func encoderOf(m Encoder, f *Fit) encoder {
	return encoder{model: m.Name(), own: true, embed: func(ctx context.Context, texts []string) ([][]int8, error) {
		out := make([][]int8, len(texts))
		for i, text := range texts {
			vec, err := m.Encode(ctx, text)
			if err != nil {
				return nil, err
			}
			out[i] = scaled(f.centered(vec))
		}
		return out, nil
	}}
}

// mayState reports whether a text may be a statement, by its gate.
func (e *Store) mayState(ctx context.Context, text string) bool {
	if !e.ownModel() {
		return true
	}
	vec, err := e.mean.question(ctx, text)
	return err != nil || e.fit.States.Of(vec) >= 0
}

// ownModel reports whether the model of this program measures meaning.
func (e *Store) ownModel() bool { return e.mean != nil && e.mean.own && !e.mean.paused.Load() }
