package embedded

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// Answers is a linear map of the vectors of questions to those of their answers. A question is more like
// other questions than like its answer.
type Answers struct {
	Scale   float32 // of the weights
	Weights []int8  // a row for each dimension
}

// answersOf reads a map from the end of a file of fitted numbers.
func answersOf(file []byte) (Answers, error) {
	if len(file) != 4+sentence.Dimensions*sentence.Dimensions {
		return Answers{}, io.ErrUnexpectedEOF
	}
	return Answers{math.Float32frombits(binary.LittleEndian.Uint32(file)), int8sOf(file[4:])}, nil
}

// Of returns the vector that the answers to a question are like.
func (a *Answers) Of(question []int8) []int8 {
	n := len(question)
	if n*n != len(a.Weights) { // of another model
		return question
	}
	out := make([]float32, n)
	for i, x := range question {
		out[i] = float32(x) + a.Scale*float32(sentence.Dot(a.Weights[i*n:(i+1)*n], question))
	}
	return scaled(out)
}
