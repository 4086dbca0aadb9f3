package cache

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// TestProofOwnership checks that a claim never takes a proof from its owner, that
// an assignment removes the owner's other proofs, and that both survive a restart.
func TestProofOwnership(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	file, err := OpenState(path, time.Hour)
	must(t, err)
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
	must(t, file.Close())
	again, err := OpenState(path, time.Hour)
	must(t, err)
	defer again.Close()
	if got, err := again.Proofs.All(context.Background()); err != nil || len(got) != 2 {
		t.Errorf("proofs after a restart: %v, %v; want 2", got, err)
	}
}

// TestAcceptedTenants checks that accepted tenants, and no others, are accepted after a
// restart and while the store fails.
func TestAcceptedTenants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	s.Tenants.Accept("a")
	if ctx := t.Context(); !s.Tenants.Accepted(ctx, "a") || s.Tenants.Accepted(ctx, "b") {
		t.Errorf("after Accept(a): a %v, b %v; want true, false", s.Tenants.Accepted(ctx, "a"), s.Tenants.Accepted(ctx, "b"))
	}
	s.Close()
	s = openState(t, path)
	defer s.Close()
	if ctx := t.Context(); !s.Tenants.Accepted(ctx, "a") || s.Tenants.Accepted(ctx, "b") {
		t.Errorf("after a restart: a %v, b %v; want true, false", s.Tenants.Accepted(ctx, "a"), s.Tenants.Accepted(ctx, "b"))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Tenants.Accepted(ended, "c") || !s.Tenants.Accepted(ended, "a") {
		t.Errorf("without the store: c %v, a %v; want false, true", s.Tenants.Accepted(ended, "c"), s.Tenants.Accepted(ended, "a"))
	}
}

// TestAcceptedTenantsAreBounded checks that a full list drops the tenant accepted longest
// ago.
func TestAcceptedTenantsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := openState(t, path)
	defer s.Close()
	err := s.tables.db.Write(t.Context(), func(tx *database.Tx) error {
		_, err := tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO accepted (list, key, value, scopes, born) SELECT '', CAST('tenant' || i AS BLOB), CAST('20000' AS BLOB), '', i FROM n`, tenantKind.most)
		return err
	})
	must(t, err)
	s.Tenants.Accept("one more")                                       // drops tenant1, the oldest
	err = s.tables.db.Write(t.Context(), func(tx *database.Tx) error { // runs after the write of Accept
		var n int
		if err := tx.QueryRow("SELECT count(*) FROM accepted").Scan(&n); err != nil || n != tenantKind.most {
			t.Errorf("%d tenants are kept (%v), want %d", n, err, tenantKind.most)
		}
		return nil
	})
	must(t, err)
	if ctx := t.Context(); s.Tenants.Accepted(ctx, "tenant1") || !s.Tenants.Accepted(ctx, "tenant2") {
		t.Errorf("accepted: tenant1 %v, tenant2 %v; want only tenant2, since tenant1 is the oldest", s.Tenants.Accepted(ctx, "tenant1"), s.Tenants.Accepted(ctx, "tenant2"))
	}
}
