package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Proofs remembers to which memory each key and identity of a registered person
// belongs. It holds digests of them and never expires: an operator may give an id
// to somebody else after years. It is safe for concurrent use.
type Proofs struct{ store proofStore }

// proofStore is where proofs outlive the process.
type proofStore interface {
	readProofs(ctx context.Context) (map[[32]byte]string, error)

	// claimProofs adds the proofs that are not there; it changes no other.
	claimProofs(ctx context.Context, memories map[[32]byte]string) error

	// assignProofs makes the proofs the only ones of a memory, and returns when
	// every replica knows it.
	assignProofs(ctx context.Context, memory string, proofs [][32]byte) error
}

// All returns the memory of each proof.
func (p *Proofs) All(ctx context.Context) (map[[32]byte]string, error) {
	all, err := p.store.readProofs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read whose memory is whose: %w", err)
	}
	return all, nil
}

// Claim stores the memory of each proof that has none. It changes no other.
func (p *Proofs) Claim(ctx context.Context, memories map[[32]byte]string) error {
	if len(memories) == 0 {
		return nil
	}
	if err := p.store.claimProofs(ctx, memories); err != nil {
		return fmt.Errorf("note whose memory is whose: %w", err)
	}
	return nil
}

// Assign makes the proofs the only ones of a memory.
func (p *Proofs) Assign(ctx context.Context, memory string, proofs [][32]byte) error {
	if err := p.store.assignProofs(ctx, memory, proofs); err != nil {
		return fmt.Errorf("note whose memory is whose: %w", err)
	}
	return nil
}

// proofFile keeps proofs in the file of one process.
type proofFile struct{ db *sqlite.DB }

func (f proofFile) readProofs(ctx context.Context) (map[[32]byte]string, error) {
	rows, err := f.db.Query(ctx, "SELECT proof, memory FROM proofs")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[[32]byte]string)
	for rows.Next() {
		var proof []byte
		var memory string
		if err := rows.Scan(&proof, &memory); err != nil {
			return nil, err
		}
		if len(proof) != 32 {
			return nil, errors.New("a proof in state.db is damaged; stop the proxy and run graphiti-proxy repair state.db")
		}
		all[[32]byte(proof)] = memory
	}
	return all, rows.Err()
}

func (f proofFile) claimProofs(ctx context.Context, memories map[[32]byte]string) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		for proof, memory := range memories {
			if _, err := tx.Exec("INSERT OR IGNORE INTO proofs VALUES (?, ?)", proof[:], memory); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f proofFile) assignProofs(ctx context.Context, memory string, proofs [][32]byte) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		if _, err := tx.Exec("DELETE FROM proofs WHERE memory = ?", memory); err != nil {
			return err
		}
		for _, proof := range proofs {
			if _, err := tx.Exec("INSERT OR REPLACE INTO proofs VALUES (?, ?)", proof[:], memory); err != nil {
				return err
			}
		}
		return nil
	})
}

// proofRedis keeps proofs where replicas share them.
type proofRedis struct{ replicas }

func (r proofRedis) readProofs(ctx context.Context) (map[[32]byte]string, error) {
	var fields map[string]string
	err := r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		fields, err = c.HGetAll(ctx, redis.Key("proofs")).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make(map[[32]byte]string, len(fields))
	for digits, memory := range fields {
		b, err := hex.DecodeString(digits)
		if err != nil || len(b) != 32 {
			return nil, errors.New("a field of the hash proofs in Redis is no digest; delete it")
		}
		all[[32]byte(b)] = memory
	}
	return all, nil
}

func (r proofRedis) claimProofs(ctx context.Context, memories map[[32]byte]string) error {
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		for proof, memory := range memories {
			p.HSetNX(ctx, redis.Key("proofs"), hex.EncodeToString(proof[:]), memory)
		}
		_, err := p.Exec(ctx)
		return err
	})
}

func (r proofRedis) assignProofs(ctx context.Context, memory string, proofs [][32]byte) error {
	all, err := r.readProofs(ctx)
	if err != nil {
		return err
	}
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.TxPipeline()
		for proof, of := range all {
			if of == memory {
				p.HDel(ctx, redis.Key("proofs"), hex.EncodeToString(proof[:]))
			}
		}
		for _, proof := range proofs {
			p.HSet(ctx, redis.Key("proofs"), hex.EncodeToString(proof[:]), memory)
		}
		_, err := p.Exec(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.db.Announce(ctx, EventProofs); err != nil {
		return fmt.Errorf("tell the other replicas: %w", err)
	}
	return nil
}
