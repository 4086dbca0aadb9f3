package observe

import (
	"context"
	"log/slog"
)

// Loss is the reason for not storing an answer.
type Loss string

// Reasons for not storing an answer.
const (
	LossCutOff   Loss = "cut_off"  // the upstream or the client ended it
	LossFailed   Loss = "error"    // the provider reported an error in it
	LossFiltered Loss = "filtered" // the provider withheld it
	LossNoEnd    Loss = "no_end"   // it is complete, but has an unknown form, or no end
	LossEncoding Loss = "encoding" // the proxy cannot decode its Content-Encoding
	LossUnread   Loss = "unread"   // it was too large, or too many came at once
	LossStore    Loss = "store"    // it could not be written
)

// Losses is the closed list of reasons, for metrics and tests.
var Losses = []Loss{LossCutOff, LossFailed, LossFiltered, LossNoEnd, LossEncoding, LossUnread, LossStore}

// isOurs reports whether the proxy lost an answer that the client received.
func (l Loss) isOurs() bool {
	return l == LossNoEnd || l == LossEncoding || l == LossUnread || l == LossStore
}

// fewLost is the highest number of a client's lost answers that is no sign.
const fewLost = 3

// Lost counts an answer that was not stored. product is the client's name for itself. Lost
// logs the first, second, fourth, eighth … answer with the same reason.
func (o *Observer) Lost(product string, why Loss) {
	n := o.lost.add(why)
	level := slog.LevelInfo
	if why.isOurs() {
		level = slog.LevelWarn
		o.clients.mu.Lock()
		o.clients.of(product, "").LostAnswers++
		o.clients.mu.Unlock()
	}
	if n&(n-1) == 0 {
		o.log.LogAttrs(context.Background(), level, "answer not stored",
			slog.String("reason", string(why)), slog.String("client", product), slog.Int64("so_far", n))
	}
}
