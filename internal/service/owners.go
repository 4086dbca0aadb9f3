package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// Owners says who wrote what a data directory holds: it has an empty name where
// there is a memory, and nothing that says whose. It makes no file that is not
// there.
func Owners(ctx context.Context, dir string) (owners []string, err error) {
	if path := filepath.Join(dir, "spool.db"); there(path) {
		q, err := capture.OpenOffline(path)
		if err != nil {
			return nil, err
		}
		list, err := q.Groups(ctx, "")
		if err = errors.Join(err, q.Close()); err != nil {
			return nil, err
		}
		for _, o := range list {
			owners = append(owners, o.Owner)
		}
	}
	if path := filepath.Join(dir, "memory.db"); len(owners) == 0 && there(path) {
		e, err := embedded.Open(path)
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
