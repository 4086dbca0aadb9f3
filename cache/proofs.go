package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Proofs stores the memory that each key and identity of a registered person belongs to. It
// holds only digests, and never expires: an operator may reassign an ID after years. It is
// safe for concurrent use.
type Proofs struct{ store *tables }

// All returns the memory of each proof.
func (p *Proofs) All(ctx context.Context) (map[[32]byte]string, error) {
	all := make(map[[32]byte]string)
	err := p.store.list(ctx, proofKind, []string{""}, func(_ string, proof, memory []byte) error {
		if len(proof) != 32 {
			return errors.New("a proof is damaged; if it is in state.db, stop the proxy and run graphiti-proxy repair state.db")
		}
		all[[32]byte(proof)] = string(memory)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the owners of memories: %w", err)
	}
	return all, nil
}

// Claim stores the memory of each proof without one. It changes no other.
func (p *Proofs) Claim(ctx context.Context, memories map[[32]byte]string) error {
	if len(memories) == 0 {
		return nil
	}
	var records []*record
	for proof, memory := range memories {
		records = append(records, &record{kind: proofKind, key: proof[:], value: []byte(memory), first: true})
	}
	if err := p.store.write(ctx, records...); err != nil {
		return fmt.Errorf("store the owners of memories: %w", err)
	}
	return nil
}

// Assign replaces all proofs of a memory, and returns when every replica has applied the
// change.
func (p *Proofs) Assign(ctx context.Context, memory string, proofs [][32]byte) error {
	all, err := p.All(ctx)
	if err != nil {
		return err
	}
	var records []*record
	for proof, of := range all {
		if of == memory && !slices.Contains(proofs, proof) {
			records = append(records, &record{kind: proofKind, key: proof[:], was: []byte(of)})
		}
	}
	for _, proof := range proofs {
		records = append(records, &record{kind: proofKind, key: proof[:], value: []byte(memory)})
	}
	if len(records) > 0 {
		err = p.store.write(ctx, records...)
	}
	if err == nil {
		err = p.store.announce(ctx)
	}
	if err != nil {
		return fmt.Errorf("store the owners of memories: %w", err)
	}
	return nil
}
