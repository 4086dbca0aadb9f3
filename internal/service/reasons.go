package service

import (
	"fmt"
	"math"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// why explains to people why a decision shows no block, or no longer shows one. It returns
// "" if the decision shows a block.
func why(d *inject.Decision, c *inject.Considered) string {
	switch {
	case d.Block != "":
		return ""
	case d.Facts > 0:
		return "the block was emptied, because a fact of its memory was forgotten or corrected"
	case inject.Reason(d.Reason) == inject.ReasonWeak:
		if best, ok := strongest(c); ok && best < c.MinScore {
			return fmt.Sprintf("the best match was too weak to show: its strength is %.2f, the threshold %.2f", math.Floor(100*best)/100, c.MinScore) // 0.149 is less than 0.15
		}
	}
	return InWords(d.Reason)
}

// strongest returns the strength of the best rejected piece; ok is false if none was weighed.
func strongest(c *inject.Considered) (best float64, ok bool) {
	for i := range c.Pieces {
		if p := &c.Pieces[i]; p.Weighed && p.Verdict == inject.Weak {
			best, ok = max(best, p.Strength), true
		}
	}
	return best, ok
}

// InWords returns the reason of a request without a block in words.
func InWords(reason string) string {
	if e, ok := inject.Reason(reason).Explain(); ok {
		return e.Says
	}
	return reason // of another version
}
