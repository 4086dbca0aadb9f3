package embedded

import (
	"context"
	_ "embed"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// ownRoutine has the vectors of routineRequests and complaints.
//
//go:embed routine.bin
var ownRoutine []byte

// Encoder computes the vectors of sentence.Model.
type Encoder interface {
	Encode(ctx context.Context, text string) ([]float32, error)
}

// encoderOf returns an encoder that runs in this process.
func encoderOf(m Encoder) encoder {
	e := encoder{model: sentence.Name, own: true, close: func() {}}
	for i := 0; i+sentence.Dimensions <= len(ownRoutine); i += sentence.Dimensions {
		e.routine = append(e.routine, int8sOf(ownRoutine[i:i+sentence.Dimensions]))
	}
	requests := min(len(routineRequests), len(e.routine))
	e.routine, e.complaints = e.routine[:requests:requests], e.routine[requests:]
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
