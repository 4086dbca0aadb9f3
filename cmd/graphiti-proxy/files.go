package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
)

// checkFilesEvery is the interval of checks of the databases. Their writers notice a fault
// immediately.
const checkFilesEvery = time.Second

// storage is an open database of data_dir.
type storage interface {
	Check() *database.Fault
	Fault() *database.Fault
}

// files are the databases of data_dir, with a count of the turns lost while one of them
// cannot be used. Without them there is no memory: the proxy could not repeat a block, or
// would lose a turn.
type files struct {
	cfg   *config.Config
	log   *slog.Logger
	lost  atomic.Int64  // turns lost while there is no memory
	proxy *proxy.Server // gets the memory

	mu       sync.Mutex // protects the fields below
	open     []storage
	unopened *database.Fault // of a database that could not be opened, or nil
	wanted   proxy.Memory    // memory of the configuration
	off      bool            // turned off because of a database
}

// serving returns the memory of a proxy without usable files.
func (f *files) serving() proxy.Memory {
	return proxy.Memory{Off: proxy.Off{Reason: inject.ReasonState, Missed: func() { f.lost.Add(1) }}}
}

// broken records that a file could not be opened. If it is busy, the proxy tries it again.
func (f *files) broken(err error, busy bool) {
	t, until := datadir.FaultOf(f.cfg.DataDir, err), "a restart"
	if busy {
		until = "its storage can be used"
	}
	f.mu.Lock()
	f.unopened = t
	f.mu.Unlock()
	f.log.Error("memory is off; requests are forwarded without memory", "until", until, "error", t.What(), "to_do", t.Remedy)
}

// notOpened returns the fault of a file that could not be opened, or nil.
func (f *files) notOpened() *database.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unopened
}

// watch checks open databases until stop ends.
func (f *files) watch(stop *stopStack, open ...storage) {
	f.mu.Lock()
	f.open, f.unopened = open, nil
	f.mu.Unlock()
	stop.Repeat("files", checkFilesEvery, func(context.Context) { f.check(open) })
}

// check turns the memory off when a database becomes unusable, and on when all are usable again.
func (f *files) check(open []storage) {
	var wrong *database.Fault
	for _, db := range open {
		if t := db.Check(); t.Lasting() && wrong == nil {
			wrong = t
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off == (wrong != nil) {
		return
	}
	if f.off = wrong != nil; f.off {
		f.log.Error("memory is off: its storage is unusable; requests are forwarded without memory", "error", wrong.What(), "to_do", wrong.Remedy)
	} else {
		f.log.Info("memory is on again: its storage is usable")
	}
	f.setLocked()
}

// set gives the memory of a configuration to the proxy.
func (f *files) set(m proxy.Memory) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = m
	f.setLocked()
}

func (f *files) setLocked() {
	if f.off {
		f.proxy.Set(f.serving())
	} else {
		f.proxy.Set(f.wanted)
	}
}

// faults returns all faults of the databases. A lasting one turns the memory off.
func (f *files) faults() (all []*database.Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unopened != nil {
		all = append(all, f.unopened)
	}
	for _, db := range f.open {
		if t := db.Fault(); t != nil && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// addTo adds the number of lost turns, and the fault that keeps turns from being stored,
// with its start.
func (f *files) addTo(s *capture.QueueStatus) {
	s.NotKept += int(f.lost.Load())
	unopened := f.notOpened()
	for _, t := range f.faults() {
		lasting := t.Lasting() || t == unopened
		if s.Unkept != nil && (!lasting || !t.Since.Before(*s.Unkept)) {
			continue
		}
		if lasting || t.Path == filepath.Join(f.cfg.DataDir, "memory.db") {
			s.Unkept, s.UnkeptError, s.UnkeptRemedy = &t.Since, t.What(), t.Remedy
		}
	}
}
