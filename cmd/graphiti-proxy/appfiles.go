package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
)

// filesEvery is how often the files of data_dir are looked at. Who writes to one
// notices at once.
const filesEvery = time.Second

// files knows whether the files of data_dir can be used. While one of them
// cannot, there is no memory: a block could not be repeated, or a turn would be
// lost.
type files struct {
	broken error          // at the start, and until a restart: memory has no parts then
	since  time.Time      // of broken
	lost   atomic.Int64   // turns of people that went by while memory was off for it
	stop   chan struct{}  // ends watch
	ended  sync.WaitGroup // of watch

	mu     sync.Mutex   // guards what follows
	wanted proxy.Memory // as the configuration has it
	off    bool         // memory is, because of a file
}

// file is one that can be looked at.
type file interface {
	Check() *sqlite.Trouble
	Trouble() *sqlite.Trouble
}

// openFiles are the files that are in use.
func (a *app) openFiles() (list []file) {
	if a.parts == nil {
		return nil
	}
	list = append(list, a.parts.state, a.pipeline)
	if a.store != nil {
		list = append(list, a.store)
	}
	return list
}

// watchFiles has memory go off when a file cannot be used any more.
func (a *app) watchFiles() {
	a.files.stop = make(chan struct{})
	a.files.ended.Go(func() { // ends with the closer
		tick := time.NewTicker(filesEvery)
		defer tick.Stop()
		for {
			select {
			case <-a.files.stop:
				return
			case <-tick.C:
				a.checkFiles()
			}
		}
	})
	a.OnClose("files", func(context.Context) error {
		close(a.files.stop)
		a.files.ended.Wait()
		return nil
	})
}

// checkFiles looks at the files, and has memory go off or on.
func (a *app) checkFiles() {
	var wrong *sqlite.Trouble
	for _, f := range a.openFiles() {
		if t := f.Check(); t.Lasting() && wrong == nil {
			wrong = t
		}
	}
	a.files.mu.Lock()
	defer a.files.mu.Unlock()
	switch off := wrong != nil; {
	case off == a.files.off:
		return
	case off:
		a.log.Error("memory is off: a file of data_dir cannot be used; chats go on, and nothing is recalled or kept", "error", wrong.What(), "to_do", wrong.Remedy)
	default:
		a.log.Info("memory is on again: the files of data_dir can be used")
	}
	a.files.off = wrong != nil
	a.setMemoryLocked()
}

// setMemory takes over what the configuration makes of memory.
func (a *app) setMemory(m proxy.Memory) {
	a.files.mu.Lock()
	defer a.files.mu.Unlock()
	a.files.wanted = m
	a.setMemoryLocked()
}

func (a *app) setMemoryLocked() {
	m := a.files.wanted
	if a.files.off {
		m = a.withoutFiles()
	}
	a.proxy.Set(m)
}

// withoutFiles is the memory of a proxy whose files cannot be used.
func (a *app) withoutFiles() proxy.Memory {
	return proxy.Memory{Off: inject.ReasonState, Missed: func() { a.files.lost.Add(1) }}
}

// giveUp goes on without memory, after a file could not be opened. It says
// everything that is wrong.
func (a *app) giveUp(err error) proxy.Memory {
	if a.lock != nil { // else they may be another's
		if all := lookAtFiles(a.cfg); len(all) > 0 {
			err = errors.Join(all...)
		}
	}
	a.files.broken, a.files.since = err, time.Now()
	for _, e := range datadir.Each(err) {
		a.log.Error("memory is off: a file of data_dir cannot be used; chats go on, and nothing is recalled or kept until a restart", "error", datadir.What(e), "to_do", datadir.Remedy(e))
	}
	return a.withoutFiles()
}

// lookAtFiles opens and closes each file, and returns what is wrong.
func lookAtFiles(cfg *config.Config) (all []error) {
	note := func(closes interface{ Close() error }, err error) {
		if err == nil {
			err = closes.Close()
		}
		if err != nil {
			all = append(all, err)
		}
	}
	if cfg.State.Backend != "redis" {
		s, err := cache.OpenState(filepath.Join(cfg.DataDir, "state.db"), cfg.Recall.StickyTTL)
		note(s, err)
	}
	q, err := capture.OpenOffline(filepath.Join(cfg.DataDir, "spool.db"))
	note(q, err)
	if cfg.Memory.Backend == "embedded" {
		e, err := embedded.Open(filepath.Join(cfg.DataDir, "memory.db"))
		note(e, err)
	}
	return all
}

// troubles are all that is wrong with the files: lasting trouble means that
// memory is off.
func (a *app) troubles() (all []*sqlite.Trouble) {
	for _, e := range datadir.Each(a.files.broken) {
		t := &sqlite.Trouble{}
		if !errors.As(e, &t) {
			cause := e
			if dir := (datadir.Error{}); errors.As(e, &dir) {
				cause = dir.Err
			}
			t = &sqlite.Trouble{Path: a.cfg.DataDir, Kind: sqlite.Denied, Err: cause, Remedy: datadir.DirRemedy}
		}
		at := *t
		at.Since = a.files.since
		all = append(all, &at)
	}
	for _, f := range a.openFiles() {
		if t := f.Trouble(); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// tellFiles adds what went by while memory was off, and since when.
func (a *app) tellFiles(s *capture.QueueStatus) {
	s.NotKept += int(a.files.lost.Load())
	for _, t := range a.troubles() {
		if !t.Lasting() && s.Unkept != nil || s.Unkept != nil && !t.Since.Before(*s.Unkept) {
			continue
		}
		if t.Lasting() || t.Path == filepath.Join(a.cfg.DataDir, "spool.db") {
			s.Unkept, s.UnkeptError, s.UnkeptRemedy = &t.Since, t.What(), t.Remedy
		}
	}
}
