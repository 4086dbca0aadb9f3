package capture

import (
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Forget deletes the turns of a part that are older than a generation, and rejects such turns from
// now on. Withdrawn counts the remainder in Graphiti. After an error it must be called
// again.
func (p *Pipeline) Forget(ctx context.Context, part ledger.Part, generation int64) error {
	defer p.Doubt()
	if err := p.forgetHeld(part, generation); err != nil {
		return err
	}
	if p.out != nil {
		defer p.out.loop.Wake() // to delete Graphiti's part
	}
	return p.Ledger.Forget(part, generation)
}

// Withdraws reports whether a part of a session was forgotten, and may still be in Graphiti.
func (p *Pipeline) Withdraws(ctx context.Context, part ledger.Part) (bool, error) {
	rows, err := p.Ledger.Withdrawn(ctx, part.Group)
	return slices.ContainsFunc(rows, func(w ledger.Withdrawn) bool { return w.Session == graphiti.SessionHash(part.Session) }), err
}
