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

// Message counts a message of the role user with a new fate, and its former one, if any. product is
// the client's name for itself. With FateNone, the message is counted elsewhere. Message logs the first,
// second, fourth, eighth … lost message with the same reason.
func (o *Observer) Message(product string, was graphiti.FateName, f graphiti.Fate) {
	if i := slices.Index(graphiti.Fates, was); i >= 0 {
		o.former[i].Add(1)
	}
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
		o.clients.of(version{product, ""}).LostAnswers++
		o.clients.mu.Unlock()
	}
	if n&(n-1) == 0 {
		o.log.LogAttrs(context.Background(), level, "message not stored",
			slog.String("reason", f.Reason), slog.String("client", product), slog.Int64("so_far", n))
	}
}

// Messages returns the number of messages with each fate, since the start. A message has one.
func (o *Observer) Messages() map[graphiti.FateName]int64 {
	out := make(map[graphiti.FateName]int64)
	o.messages.each(func(f graphiti.FateName, n int64) { out[f] += n })
	for i, f := range graphiti.Fates {
		out[f] -= min(out[f], o.former[i].Load())
	}
	return out
}
