package main

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
)

// memorySet is what the proxy was given to remember with. While a file of
// data_dir cannot be used it has nothing: a block could not be repeated, or a
// turn would be lost.
type memorySet struct {
	mu     sync.Mutex   // guards what follows
	wanted proxy.Memory // as the configuration has it
	off    bool         // because of a file
}

// setMemory takes over what the configuration makes of memory.
func (a *app) setMemory(m proxy.Memory) {
	a.set.mu.Lock()
	defer a.set.mu.Unlock()
	a.set.wanted = m
	a.setMemoryLocked()
}

func (a *app) setMemoryLocked() {
	if a.set.off {
		a.proxy.Set(a.withoutFiles())
	} else {
		a.proxy.Set(a.set.wanted)
	}
}

// withoutFiles is the memory of a proxy whose files cannot be used.
func (a *app) withoutFiles() proxy.Memory {
	return proxy.Memory{Off: proxy.Off{Reason: inject.ReasonState, Missed: func() { a.lost.Add(1) }}}
}

// warm has the first searches find an index.
func (a *app) warm(ctx context.Context) {
	if a.store == nil {
		return
	}
	if err := a.store.Warm(ctx); err != nil {
		a.log.Warn("index the memory failed; the first searches wait for it", "error", err)
	}
}

// watchFiles has memory go off when a file cannot be used any more.
func (a *app) watchFiles() {
	a.files.Watch([]datadir.Database{a.parts.state, a.pipeline}, a.filesChanged)
	a.OnClose("files", func(context.Context) error { a.files.Close(); return nil })
}

func (a *app) filesChanged(wrong *sqlite.Fault) {
	a.set.mu.Lock()
	defer a.set.mu.Unlock()
	if a.set.off = wrong != nil; a.set.off {
		a.log.Error("memory is off: a file of data_dir cannot be used; requests are forwarded, and nothing is recalled or kept", "error", wrong.What(), "to_do", wrong.Remedy)
	} else {
		a.log.Info("memory is on again: the files of data_dir can be used")
	}
	a.setMemoryLocked()
}

// startWithout has the proxy start without memory after a file could not be
// opened. It says everything that is wrong.
func (a *app) startWithout(err error) proxy.Memory {
	all := []error{err}
	if a.lock != nil { // else they may be another's
		if more := service.TryFiles(a.cfg.DataDir, a.cfg.State.Backend != "redis", a.cfg.RemoteMemory()); len(more) > 0 {
			all = more
		}
	}
	a.files.Broken(a.cfg.DataDir, all...)
	for _, t := range a.files.NotOpened() {
		a.log.Error("memory is off: a file of data_dir cannot be used; requests are forwarded, and nothing is recalled or kept until a restart", "error", t.What(), "to_do", t.Remedy)
	}
	return a.withoutFiles()
}

// turnsFile is where turns are kept.
func turnsFile(cfg *config.Config) string {
	if cfg.RemoteMemory() {
		return filepath.Join(cfg.DataDir, "spool.db")
	}
	return filepath.Join(cfg.DataDir, "memory.db")
}

// addFileFaults adds what was lost while memory was off, and since when turns
// cannot be kept.
func (a *app) addFileFaults(s *capture.QueueStatus) {
	s.NotKept += int(a.lost.Load())
	for _, t := range a.files.Faults() {
		if s.Unkept != nil && (!t.Lasting() || !t.Since.Before(*s.Unkept)) {
			continue
		}
		if t.Lasting() || t.Path == turnsFile(a.cfg) {
			s.Unkept, s.UnkeptError, s.UnkeptRemedy = &t.Since, t.What(), t.Remedy
		}
	}
}
