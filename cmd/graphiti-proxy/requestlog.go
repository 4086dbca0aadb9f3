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

// startRequestLog restores the newest requests of the last process, and stores them in the background
// and at the end.
func (a *app) startRequestLog() {
	path := filepath.Join(a.cfg.DataDir, requestsFile)
	b, err := datadir.ReadFile(path, requestsBytes)
	if err == nil {
		err = a.proxy.Observer().RestorePassed(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("read the request log failed, it begins empty", "error", err)
	}
	_, saved := a.proxy.Observer().SavePassed(0)
	failing := false
	save := func() {
		b, last := a.proxy.Observer().SavePassed(saved)
		if b == nil {
			return
		}
		err := datadir.WriteFile(path, b)
		if err == nil {
			saved = last
		} else if !failing {
			a.log.Warn("store the request log failed, a restart loses it", "error", err)
		}
		failing = err != nil
	}
	a.OnClose("request log", closes(save))
	a.Repeat("writes of the request log", saveEvery, func(context.Context) { save() })
}
