package main

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
)

// files are the databases of data_dir, with a count of the turns lost while one of them
// cannot be used. Without them there is no memory: the proxy could not repeat a block, or
// would lose a turn.
type files struct {
	datadir.Files
	cfg  *config.Config
	log  *slog.Logger
	lost atomic.Int64 // turns lost meanwhile
}

// serving returns the memory of a proxy without usable files.
func (f *files) serving() proxy.Memory {
	return proxy.Memory{Off: proxy.Off{Reason: inject.ReasonState, Missed: func() { f.lost.Add(1) }}}
}

// broken records that a file could not be opened. If it is busy, the proxy tries it again.
func (f *files) broken(err error, busy bool) {
	f.Opened()
	f.Broken(f.cfg.DataDir, err)
	until := "a restart"
	if busy {
		until = "its storage can be used"
	}
	for _, t := range f.NotOpened() {
		f.log.Error("memory is off; requests are forwarded without memory", "until", until, "error", t.What(), "to_do", t.Remedy)
	}
}

// addTo adds the number of lost turns, and the fault that keeps turns from being stored,
// with its start.
func (f *files) addTo(s *capture.QueueStatus) {
	s.NotKept += int(f.lost.Load())
	unopened := f.NotOpened()
	for _, t := range f.Faults() {
		lasting := t.Lasting() || slices.Contains(unopened, t)
		if s.Unkept != nil && (!lasting || !t.Since.Before(*s.Unkept)) {
			continue
		}
		if lasting || t.Path == turnsFile(f.cfg) {
			s.Unkept, s.UnkeptError, s.UnkeptRemedy = &t.Since, t.What(), t.Remedy
		}
	}
}

// turnsFile returns the path of the record of turns.
func turnsFile(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "memory.db")
}

// memorySwitch gives its memory to a proxy, and turns it off while a file of data_dir
// cannot be used.
type memorySwitch struct {
	files *files
	proxy *proxy.Server

	mu     sync.Mutex   // guards the fields below
	wanted proxy.Memory // memory of the configuration
	off    bool         // turned off because of a file
}

// set applies the settings of memory.
func (s *memorySwitch) set(m proxy.Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = m
	s.setLocked()
}

func (s *memorySwitch) setLocked() {
	if s.off {
		s.proxy.Set(s.files.serving())
	} else {
		s.proxy.Set(s.wanted)
	}
}

func (s *memorySwitch) filesChanged(wrong *database.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off = wrong != nil; s.off {
		s.files.log.Error("memory is off: its storage is unusable; requests are forwarded without memory", "error", wrong.What(), "to_do", wrong.Remedy)
	} else {
		s.files.log.Info("memory is on again: its storage is usable")
	}
	s.setLocked()
}
