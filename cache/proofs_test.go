package cache

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"
)

// TestProofOwnership checks that a claim never takes a proof from its owner, that
// an assignment removes the owner's other proofs, and that both survive a restart.
func TestProofOwnership(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	file, err := OpenState(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*State{"file": file} {
		p, ctx := s.Proofs, context.Background()
		a, b, c := [32]byte{1}, [32]byte{2}, [32]byte{3}
		steps := []func() error{
			func() error { return p.Claim(ctx, nil) },
			func() error { return p.Claim(ctx, map[[32]byte]string{a: "user:josh", b: "user:josh"}) },
			func() error { return p.Claim(ctx, map[[32]byte]string{a: "user:ann", c: "user:ann"}) },
			func() error { return p.Assign(ctx, "user:josh", [][32]byte{a, c}) },
		}
		for i, want := range []map[[32]byte]string{
			{}, {a: "user:josh", b: "user:josh"}, {a: "user:josh", b: "user:josh", c: "user:ann"}, {a: "user:josh", c: "user:josh"},
		} {
			if err := steps[i](); err != nil {
				t.Fatal(name, err)
			}
			if got, err := p.All(ctx); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s: proofs after step %d: %v, %v; want %v", name, i, got, err, want)
			}
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenState(path, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := again.Proofs.All(context.Background()); err != nil || len(got) != 2 {
		t.Errorf("proofs after a restart: %v, %v; want 2", got, err)
	}
}
