package observe

import (
	"context"
	"log/slog"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ours are the reasons for losing an answer that the client received.
var ours = []string{graphiti.LostNoEnd, graphiti.LostEncoding, graphiti.LostUnread, graphiti.LostStore}

// fewLost is the highest number of a client's lost answers that is no sign.
const fewLost = 3

// Message counts a message of the role user with a new fate. product is the client's name for
// itself. Message logs the first, second, fourth, eighth … lost message with the same reason.
func (o *Observer) Message(product string, f graphiti.Fate) {
	if f.Name == graphiti.FateNone {
		return
	}
	o.messages.add(f.Name)
	if f.Name != graphiti.FateLost {
		return
	}
	n := o.lost.add(f.Reason)
	level := slog.LevelInfo
	if slices.Contains(ours, f.Reason) {
		level = slog.LevelWarn
		o.clients.mu.Lock()
		o.clients.of(product, "").LostAnswers++
		o.clients.mu.Unlock()
	}
	if n&(n-1) == 0 {
		o.log.LogAttrs(context.Background(), level, "message not stored",
			slog.String("reason", f.Reason), slog.String("client", product), slog.Int64("so_far", n))
	}
}

// Messages returns the number of messages with each fate since the start.
func (o *Observer) Messages() map[graphiti.FateName]int64 {
	out := make(map[graphiti.FateName]int64)
	o.messages.each(func(f graphiti.FateName, n int64) { out[f] += n })
	return out
}
