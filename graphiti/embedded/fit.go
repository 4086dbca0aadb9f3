package embedded

import (
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// Fit has the numbers that bench fit has fitted to the vectors of a model.
type Fit struct {
	Gates
	Answers Answers
	Score   Weights
}

// Gates are the gates of messages.
type Gates struct {
	Center [sentence.Dimensions]float32 // mean of the vectors of many texts, if they are all near it
	Asks   Gate                         // of messages that ask for something that may be remembered
	Tells  Gate                         // of statements, not messages that Asks means
	States Gate                         // of statements, not questions and requests
	Self   SelfGates
}

//go:embed fitted
var fitted embed.FS

// FitOf returns the numbers in the program for a model of package sentence.
func FitOf(model string) *Fit {
	f := &Fit{}
	gates, noGates := fitted.ReadFile("fitted/" + model + ".bin")
	score, noScore := fitted.ReadFile("fitted/" + model + ".json")
	n, short := binary.Decode(gates, binary.LittleEndian, &f.Gates)
	var noAnswers error
	f.Answers, noAnswers = answersOf(gates[n:])
	if err := errors.Join(noGates, noScore, short, noAnswers, json.Unmarshal(score, &f.Score)); err != nil {
		panic(fmt.Errorf("read the numbers fitted to %s: %w", model, err)) // a fault of the build
	}
	return f
}

// centered returns a vector less the center.
func (g *Gates) centered(vec []float32) []float32 {
	out := make([]float32, len(vec))
	for i, v := range vec {
		out[i] = v - g.Center[i]
	}
	return out
}
