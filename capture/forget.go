package capture

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
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
