package service

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// RetentionRequest asks for the effect of memory.retain and memory.retention.
type RetentionRequest struct {
	Days int `json:"days" help:"count as if memory.retain had this many days"`
}

// Expiring lists the groups with messages and facts that the next hour deletes, and those on hold.
type Expiring struct {
	Groups []ledger.Expired `json:"groups"`
}

// Retention counts the old messages that will be deleted. It deletes nothing.
var Retention = Operation[RetentionRequest, Expiring]{
	Spec: Spec{Name: "memory/retention", About: "The old messages, facts and the work of agents that memory.retain and memory.retention delete within the hour, and those on hold, as counts; deletes nothing", Metadata: true, Reads: true, Fails: OfFiles},
	Run: func(ctx context.Context, h *Host, in *RetentionRequest) (e Expiring, err error) {
		if in.Days < 0 {
			return e, invalid("days must not be negative")
		}
		p := h.Memory.o.Pipeline
		r := p.Retention()
		if in.Days > 0 {
			r.Age = time.Duration(in.Days) * 24 * time.Hour
		}
		if e.Groups, err = p.Expired(ctx, &r); e.Groups == nil {
			e.Groups = []ledger.Expired{}
		}
		return e, err
	},
}

// released returns an error if a part belongs to a person or project on hold.
func (sv *Service) released(ctx context.Context, part ledger.Part) error {
	r := sv.o.Pipeline.Retention()
	if len(r.Of) == 0 {
		return nil
	}
	owned, err := sv.o.Pipeline.Owned(ctx, "")
	if err != nil {
		return err
	}
	for _, o := range owned {
		if o.Group == part.Group && (part.Owner == "" || o.Owner == part.Owner || r.Of[o.Key] == ledger.Hold) && r.For([]ledger.Owned{o}) == ledger.Hold {
			return ForbiddenError{fmt.Errorf("%s is on hold in memory.retention, so all messages stay; an operator can end the hold", o.Key)}
		}
	}
	return nil
}
