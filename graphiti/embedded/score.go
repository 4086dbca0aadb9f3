package embedded

import (
	"math"
	"slices"
)

// Features describe a message or a fact as an answer to a question. Their order is that of
// FeatureNames.
type Features [featureCount]float64

const (
	fAsks     = iota // gate of the question: it asks for something that may be remembered
	fBefore          // strength by words and their neighbors, see judge
	fPieces          // share of the question's weight in its pieces of words
	fLike            // likeness of meaning
	fTogether        // pieces and likeness, in standard deviations above the other candidates
	fBehind          // the same, less than the best candidate
	fStates          // gate of the candidate: it is a statement
	fSure            // probability of that
	fModels          // 1 if a model said it
	fFact            // 1 for a fact
	fDated           // it is from the time in question
	fKey             // rarity of a whole key of a fact in the question, up to 1
	fExchange        // 1 for an exchange
	fNewer           // share of the other candidates that are older
	fVersion         // of a newer candidate than the best by pieces and likeness: the square of the likeness to it
	featureCount
)

// FeatureNames are the names of the features in weights.json.
var FeatureNames = [featureCount]string{
	"asks", "before", "pieces", "like", "together", "behind", "states", "sure", "models", "fact", "dated", "key", "exchange", "newer", "version",
}

// Weights are the fitted numbers of a logistic regression.
type Weights struct {
	Origin   string
	Bias     float64
	Alike    float64 // likeness of texts with the same meaning
	Features [featureCount]Feature
}

// Feature is a weight, and the mean and the standard deviation of the value. A value counts
// as at most four deviations: rare values must not decide.
type Feature struct {
	Name                    string
	Weight, Mean, Deviation float64
}

// Of returns the weighted value.
func (f *Feature) Of(x float64) float64 {
	if f.Deviation == 0 {
		return 0
	}
	return f.Weight * max(-4, min(4, (x-f.Mean)/f.Deviation))
}

const (
	enough  = 0.18 // strength by words that suffices for a message that asks
	certain = 0.8  // strength by words that suffices for every message

	asksNothing = -0.65 // gate below which nothing else suffices
	maybeAsks   = -0.15 // gate from which a message asks: of short questions it is near zero
	surelyAsks  = 0.15  // gate from which the best candidate suffices, if it is a statement and alike
)

// Strength returns the probability that a candidate answers its question; at least enough if its
// words, or its likeness, suffice.
func (w *Weights) Strength(f *Features) float64 {
	if f[fAsks] < asksNothing && f[fBefore] < certain {
		return 0
	}
	sum := w.Bias
	for k := range f {
		sum += w.Features[k].Of(f[k])
	}
	if f[fBefore] >= certain || f[fBefore] >= enough && f[fAsks] >= 0 {
		return max(logistic(sum), f[fBefore])
	}
	if f[fAsks] >= surelyAsks && f[fLike] >= w.Alike && f[fSure] >= 0.5 && f[fBehind] == 0 {
		return max(logistic(sum), enough)
	}
	return logistic(sum)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

const (
	// A small memory has few candidates to compare with: these are added.
	others      = 8.0
	usualPieces = 0.08
	usualLike   = 0.12

	mostLength = 2000 // bytes of a message that count
)

// features sets the features of candidates.
func (q *asked) features(g *groupIndex, v *groupVectors, all []*hit, pieces []term) {
	whole, length := weightOf(pieces), 0.0
	for _, h := range all {
		length += float64(min(h.note.Length, mostLength)) / float64(len(all))
	}
	for _, h := range all {
		f, flags := &h.features, h.note.Flags
		f[fAsks], f[fBefore], f[fSure] = q.gate, h.strength, 0.5
		// Of two messages with the same words, the shorter one is about them (BM25).
		short := 2 / (1 + 0.25 + 0.75*float64(min(h.note.Length, mostLength))/(length+1))
		f[fPieces] = short * shareAt(pieces, h.place) / max(whole, 1e-9)
		h.vec = v.at(h.place)
		f[fLike] = q.like(h.vec)
		if h.exchange != nil {
			f[fExchange] = 1
			for _, m := range h.exchange.messages() {
				f[fPieces] = max(f[fPieces], short*shareAt(pieces, m.place)/max(whole, 1e-9))
				if vec := v.at(m.place); vec != nil && (h.vec == nil || q.like(vec) > f[fLike]) {
					h.vec, f[fLike] = vec, q.like(vec)
				}
			}
		} else if h.vec != nil && flags&(isFact|isModels) == 0 {
			f[fStates] = q.states(h)
			f[fSure] = logistic(gateUnit * f[fStates])
		}
		f[fModels], f[fFact] = bit(h.exchange == nil && flags&isModels != 0), bit(flags&isFact != 0)
		f[fKey] = rarestAt(q.keys, h.place)
		f[fDated] = q.dates.fit(q.numbers, h.note.Day) - 1
	}
	standard := func(of int, usual float64) func(h *hit) float64 {
		sum, squares, n := others*usual, others*2*usual*usual, others+float64(len(all))
		for _, h := range all {
			sum, squares = sum+h.features[of], squares+h.features[of]*h.features[of]
		}
		deviation := math.Sqrt(max(0, squares/n-sum/n*sum/n)) + 0.05
		return func(h *hit) float64 { return (h.features[of] - sum/n) / deviation }
	}
	places := make([]int64, len(all))
	for i, h := range all {
		places[i] = h.place
	}
	slices.Sort(places)
	byPieces, byMeaning := standard(fPieces, usualPieces), standard(fLike, usualLike)
	var best *hit
	for _, h := range all {
		f := &h.features
		f[fTogether] = (byPieces(h) + byMeaning(h)) / 4
		if best == nil || f[fTogether] > best.features[fTogether] {
			best = h
		}
		older, _ := slices.BinarySearch(places, h.place)
		f[fNewer] = float64(older) / float64(max(1, len(all)-1))
	}
	for _, h := range all {
		f := &h.features
		f[fBehind] = f[fTogether] - best.features[fTogether]
		if h.place > best.place {
			f[fVersion] = math.Pow(max(0, likeness(h.vec[:min(len(h.vec), len(q.vec))], best.vec)), 2)
		}
	}
}

// like returns the likeness of a vector to the question's; the usual one without a vector.
func (q *asked) like(vec []int8) float64 {
	if vec == nil {
		return usualLike
	}
	return likeness(q.answer, vec) - q.level
}

func bit(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
