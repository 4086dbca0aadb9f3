package observe

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/client"
)

// keptOf counts the turns of a client whose kept words begin with an unknown tag.
type keptOf struct {
	turns  atomic.Int64
	labels metric.AddOption
}

// Kept looks at what is kept of a turn: the words of a person begin with a tag where
// a client wraps them in one that no rule knows. kind is that of a curated text,
// which is no person's; product is what the client calls itself.
func (o *Observer) Kept(kind, product, words string) {
	if kind != "" || !client.UnknownTag(words) {
		return
	}
	of := o.byClient[client.Named(product)]
	of.turns.Add(1)
	o.unknownTags.Add(context.Background(), 1, of.labels)
}

// UnknownTags are the turns since the process began whose kept words begin with a
// tag that no rule knows, by the client's name; without those that have none.
func (o *Observer) UnknownTags() map[string]int64 {
	all := make(map[string]int64)
	for name, of := range o.byClient {
		if n := of.turns.Load(); n > 0 {
			all[name] = n
		}
	}
	return all
}
