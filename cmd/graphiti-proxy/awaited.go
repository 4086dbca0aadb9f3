package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// retryFilesEvery is the time between two tries to open busy files.
const retryFilesEvery = time.Second

var errBusyFiles = errors.New("the storage of the memory cannot be used yet, so the proxy cannot tell whose key this is; try again in a moment")

// awaited is a memory with a file of data_dir that another program uses at the start.
type awaited struct {
	opener *opener // with a stopStack of its own
	tries  sync.WaitGroup
	ended  context.Context // of the tries
}

// await returns a memory to open later.
func (o *opener) await() *awaited {
	later := *o
	later.stop = &stopStack{Grace: o.stop.Grace, Log: o.stop.Log}
	ended, end := context.WithCancel(context.Background())
	w := &awaited{opener: &later, ended: ended}
	o.stop.OnClose("memory", func(ctx context.Context) error {
		end()
		w.tries.Wait()
		return later.stop.Shutdown(ctx)
	})
	return w
}

// start opens the memory of a running app, if it is awaited.
func (w *awaited) start(a *app) {
	if w != nil {
		w.tries.Go(func() { w.open(a) }) // ends after a try without a busy file, or with the app
	}
}

// open opens the memory once its files are free, unless they have another fault.
func (w *awaited) open(a *app) {
	for {
		select {
		case <-w.ended.Done():
			return
		case <-time.After(retryFilesEvery):
		}
		r, err := w.opener.openParts()
		if err == nil {
			a.take(r)
			r.warm(w.ended)
			return
		}
		w.opener.stop.Undo(0)
		if !sqlite.IsBusy(err) {
			a.files.broken(err, false)
			return
		}
	}
}

// take gives an open memory to the proxy.
func (a *app) take(r *remembering) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	read := a.live.Load()
	r.start(a.proxy)
	if err := r.reload(read, func() error { return nil }); err != nil { // else the proxy has the memory now
		a.log.Error("reload configuration failed, that of the start stays in force for memory", "error", err)
		r.given.set(r.serving())
	}
	a.become(r)
	a.files.Opened()
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
