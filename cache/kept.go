package cache

import (
	"context"
	"fmt"
)

// Kept stores the forgets whose words the memory may still hold in summaries: a record exists
// from the start of the deletion to the proof of clean summaries. Forgetting the whole group
// deletes the records. It is safe for concurrent use.
type Kept struct{ store *tables }

// Add stores a record for a forget that a process carries out, unless there is one.
func (k *Kept) Add(ctx context.Context, f *Forget, process string) error {
	r := &record{kind: keptKind, list: f.Group, key: []byte(f.Scope), value: []byte(process), first: true, scopes: []string{f.Group}, generation: f.Generation}
	if err := k.store.write(ctx, r); err != nil {
		return fmt.Errorf("record a deletion: %w", err)
	}
	return nil
}

// Prove deletes the records of a group that a process added: the summaries have been checked.
// It leaves those of other processes, which may have deleted messages without a proof.
func (k *Kept) Prove(ctx context.Context, group, process string) error {
	err := k.store.remove(ctx, keptKind, []string{group}, func(_, value []byte) bool { return string(value) == process })
	if err != nil {
		return fmt.Errorf("remove the records of a deletion: %w", err)
	}
	return nil
}

// Has reports whether a forget of a scope in a group has a record, or any if the scope is "".
func (k *Kept) Has(ctx context.Context, group, scope string) (has bool, err error) {
	err = k.store.list(ctx, keptKind, []string{group}, func(_ string, key, _ []byte) error {
		has = has || scope == "" || string(key) == scope
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read the records of deletions: %w", err)
	}
	return has, nil
}
