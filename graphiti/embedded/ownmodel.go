package embedded

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// ownFloor is the least likeness of a statement to its question in the vectors of
// sentence.Model.
const ownFloor = 0.30

// encoderOf returns an encoder that runs in this process.
func encoderOf(m *sentence.Model) encoder {
	return encoder{
		model: sentence.Name, close: func() {}, floor: ownFloor,
		embed: func(ctx context.Context, texts []string) ([][]int8, error) {
			out := make([][]int8, len(texts))
			for i, text := range texts {
				vec, err := m.Encode(ctx, text)
				if err != nil {
					return nil, err
				}
				out[i] = scaled(vec)
			}
			return out, nil
		},
	}
}
