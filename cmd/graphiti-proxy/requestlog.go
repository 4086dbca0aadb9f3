package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
)

const (
	requestsFile  = "requests.json" // in data_dir
	saveEvery     = 10 * time.Second
	requestsBytes = 4 << 20 // a longer file is damaged
)

// startRequestLog restores the newest requests of the last process, and stores them until the app is
// shut down.
func (a *app) startRequestLog() {
	path := filepath.Join(a.cfg.DataDir, requestsFile)
	b, err := datadir.ReadFile(path, requestsBytes)
	if err == nil {
		err = a.proxy.Observer().RestorePassed(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("read the request log failed, it begins empty", "error", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	// Ends with cancel.
	go func() { defer close(ended); a.keepRequestLog(ctx, path) }()
	a.OnClose("request log", closes(func() { cancel(); <-ended }))
}

func (a *app) keepRequestLog(ctx context.Context, path string) {
	t := time.NewTicker(saveEvery)
	defer t.Stop()
	_, saved := a.proxy.Observer().SavePassed(0)
	for ended, failing := false, false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-t.C:
		}
		b, last := a.proxy.Observer().SavePassed(saved)
		if b == nil {
			continue
		}
		err := datadir.WriteFile(path, b)
		if err == nil {
			saved = last
		} else if !failing {
			a.log.Warn("store the request log failed, a restart loses it", "error", err)
		}
		failing = err != nil
	}
}
