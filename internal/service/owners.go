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
	if there(memory) {
		l, err := OpenLedger(dir)
		if err != nil {
			return nil, err
		}
		list, err := l.Owned(ctx, "")
		if err = errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
		for _, o := range list {
			owners = append(owners, o.Owner)
		}
	}
	if len(owners) == 0 && there(memory) {
		e, err := embedded.Open(memory)
		if err != nil {
			return nil, err
		}
		holds, err := e.Holds(ctx)
		if err = errors.Join(err, e.Close()); err != nil {
			return nil, err
		}
		if holds {
			owners = append(owners, "")
		}
	}
	return owners, nil
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
