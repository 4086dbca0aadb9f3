package embedded

import (
	_ "embed"
	"encoding/binary"
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// Gate is a logistic regression on the vector of a text.
type Gate struct {
	Bias    float32
	Weights [sentence.Dimensions]float32
}

// gateUnit is the unit of Gate.Of.
const gateUnit = 4

// Of returns the logarithm of the odds, at most 8 and divided by gateUnit.
func (g *Gate) Of(vec []int8) float64 {
	if len(vec) != len(g.Weights) {
		return 0
	}
	sum := float32(0)
	for i, x := range vec {
		sum += g.Weights[i] * float32(x)
	}
	return math.Max(-2, math.Min(2, float64(sum/127+g.Bias)/gateUnit))
}

// gates.bin has the numbers of two gates, which bench fit makes.
//
//go:embed gates.bin
var gatesFile []byte

// asksGate tells messages that ask for something that may be remembered. statesGate tells
// statements from questions and requests.
var asksGate, statesGate = func() (asks, states Gate) {
	g := decoded[[2]Gate](gatesFile)
	return g[0], g[1]
}()

// decoded returns the gates in a file.
func decoded[T any](file []byte) (g T) {
	if _, err := binary.Decode(file, binary.LittleEndian, &g); err != nil {
		panic(err)
	}
	return g
}
