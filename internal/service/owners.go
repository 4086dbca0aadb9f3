package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// Owners returns the owners of the groups in a data directory; "" stands for a memory
// without a recorded owner. It creates no file.
func Owners(ctx context.Context, dir string) (owners []string, err error) {
	memory := filepath.Join(dir, "memory.db")
	if _, err := os.Stat(memory); err != nil {
		return nil, nil //nolint:nilerr // there is no memory
	}
	e, err := embedded.Open(memory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	list, err := e.Ledger(nil).Owned(ctx, "")
	for _, o := range list {
		owners = append(owners, o.Owner)
	}
	if len(owners) > 0 || err != nil {
		return owners, err
	}
	s, err := e.Stored(ctx)
	if s.Messages > 0 {
		owners = append(owners, "")
	}
	return owners, err
}
