package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// retryFilesEvery is the time between two tries to open busy files.
const retryFilesEvery = time.Second

var errBusyFiles = errors.New("the storage of the memory cannot be used yet, so the proxy cannot tell whose key this is; try again in a moment")

// awaitMemory opens the memory of a running app once its files, which another program uses at the
// start, are free, unless they have another fault.
func (a *app) awaitMemory(o opener) {
	o.stop = &stopStack{Grace: o.stop.Grace, Log: o.stop.Log}
	a.OnClose("memory", o.stop.Shutdown)
	ended := false
	a.Repeat("tries to open the memory", retryFilesEvery, func(ctx context.Context) {
		if ended {
			return
		}
		r, err := o.openParts()
		if err == nil {
			ended = true
			a.take(r)
			r.warm(ctx)
			return
		}
		o.stop.Undo(0)
		if ended = !sqlite.IsBusy(err); ended {
			a.files.broken(err, false)
		}
	})
}

// take gives an open memory to the proxy.
func (a *app) take(r *remembering) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	read := a.live.Load()
	r.start(a.proxy)
	if err := r.reload(read, func() error { return nil }); err != nil { // else the proxy has the memory now
		a.log.Error("reload configuration failed, that of the start stays in force for memory", "error", err)
		r.files.set(r.serving())
	}
	a.become(r)
	a.hosted.Become(a.host())
	if err := a.proxy.SetRoutes(a.routes(read)); err != nil {
		a.log.Error("set routes failed, WebSockets have no memory until a reload", "error", err)
	}
	a.log.Info("memory is on: its storage can be used")
}

// holder is remembering.holder, once the memory is open.
func (a *app) holder(ctx context.Context, fingerprint string, head http.Header) (service.Caller, error) {
	if r, ok := a.memory().(*remembering); ok {
		return r.holder(ctx, fingerprint, head)
	}
	return service.Caller{}, errBusyFiles
}
