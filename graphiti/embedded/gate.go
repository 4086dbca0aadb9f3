package embedded

import (
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// Gate is a logistic regression on the vector of a text, which may be shorter.
type Gate struct {
	Bias    float32
	Weights [sentence.Dimensions]float32
}

// gateUnit is the unit of Gate.Of.
const gateUnit = 4

// surelyTells is the value of Gates.Tells from which a message is a statement: a third of the blocks
// for statements, which answer nothing, go, and one answer in two hundred.
const surelyTells = 3.0 / gateUnit

// LeastGate is the least value of a Gate.
const LeastGate = -8.0 / gateUnit

// Wants returns the value of Asks, or LeastGate for a statement.
func (g *Gates) Wants(vec []int8) float64 {
	if g.Tells.Of(vec) > surelyTells {
		return LeastGate
	}
	return g.Asks.Of(vec)
}

// Of returns the logarithm of the odds, at most 8 and divided by gateUnit.
func (g *Gate) Of(vec []int8) float64 {
	if len(vec) > len(g.Weights) { // of another model
		return 0
	}
	sum := float32(0)
	for i, x := range vec {
		sum += g.Weights[i] * float32(x)
	}
	return math.Max(LeastGate, math.Min(2, float64(sum/127+g.Bias)/gateUnit))
}
