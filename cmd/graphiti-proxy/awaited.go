package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
)

// retryFilesEvery is the time between two tries to open busy files.
const retryFilesEvery = time.Second

var errBusyFiles = errors.New("the storage of the memory cannot be used yet, so the proxy cannot tell whose key this is; try again in a moment")

// awaited is the memory of a proxy that started while another program used a file of
// data_dir: none at first, and after the first successful try the memory in the files.
type awaited struct {
	opener *opener // with a stopStack of its own
	proxy  *proxy.Server
	opened func(read *config.Config)
	now    atomic.Pointer[memory]

	retries sync.WaitGroup
	ended   context.Context // of the retries
	end     context.CancelFunc

	reloading sync.Mutex     // held while a configuration or the memory changes
	read      *config.Config // latest configuration
}

// await returns a memory that opens the parts later.
func (o *opener) await() *awaited {
	later := *o
	later.stop = &stopStack{Grace: o.stop.Grace, Log: o.stop.Log}
	w := &awaited{opener: &later, read: o.cfg}
	w.ended, w.end = context.WithCancel(context.Background())
	w.become(withoutFiles(o.files))
	o.stop.OnClose("memory", w.close)
	return w
}

func (w *awaited) become(m memory) { w.now.Store(&m) }
func (w *awaited) current() memory { return *w.now.Load() }

func (w *awaited) serving() proxy.Memory      { return w.current().serving() }
func (w *awaited) warm(ctx context.Context)   { w.current().warm(ctx) }
func (w *awaited) host() *service.Host        { return w.current().host() }
func (w *awaited) queue() capture.QueueStatus { return w.current().queue() }
func (w *awaited) close(ctx context.Context) error {
	w.end()
	w.retries.Wait()
	return w.opener.stop.Shutdown(ctx)
}

func (w *awaited) describe(ctx context.Context, s *health.Status, fresh bool) {
	w.current().describe(ctx, s, fresh)
}

func (w *awaited) start(p *proxy.Server, opened func(*config.Config)) {
	w.proxy, w.opened = p, opened
	w.retries.Go(w.retry) // ends after a try without a busy file, or with close
}

func (w *awaited) retry() {
	for {
		select {
		case <-w.ended.Done():
			return
		case <-time.After(retryFilesEvery):
		}
		r, err := w.opener.openParts()
		if err == nil {
			w.take(r)
			r.warm(w.ended)
			return
		}
		w.opener.stop.Undo(0)
		if !sqlite.IsBusy(err) {
			w.opener.files.broken(err, true)
			return
		}
	}
}

// take gives an open memory to the proxy.
func (w *awaited) take(r *remembering) {
	w.reloading.Lock()
	defer w.reloading.Unlock()
	r.start(w.proxy, nil)
	if err := r.reload(w.read, func() error { return nil }); err != nil { // else the proxy has the memory now
		w.opener.log.Error("reload configuration failed, that of the start stays in force for memory", "error", err)
		r.given.set(r.serving())
	}
	w.become(r)
	w.opener.files.Opened()
	w.opened(w.read)
	w.opener.log.Info("memory is on: its storage can be used")
}

func (w *awaited) reload(cfg *config.Config, rest func() error) error {
	w.reloading.Lock()
	defer w.reloading.Unlock()
	err := w.current().reload(cfg, rest)
	if err == nil {
		w.read = cfg
	}
	return err
}

// holder is remembering.holder, once the memory is open.
func (w *awaited) holder(ctx context.Context, fingerprint string, head http.Header) (service.Caller, error) {
	if r, ok := w.current().(*remembering); ok {
		return r.holder(ctx, fingerprint, head)
	}
	return service.Caller{}, errBusyFiles
}
