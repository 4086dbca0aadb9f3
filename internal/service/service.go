// Package service owns the operations on a memory and on the queue of its turns. Each operation
// is one value in one table, which the admin listener and the commands mount.
package service

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
)

// Options configures a Service.
type Options struct {
	Memory   *graphiti.Memory
	Pipeline *capture.Pipeline
	Planner  func() *inject.Planner // which needs the service, too
	Standing *standing.Keeper
	State    *cache.State

	Graph *graphiti.Memory // gets a copy, or nil

	Multi bool   // every credential is a tenant
	Owner string // person of single mode

	People People // registered people

	Secret []byte // signs the standing texts of exports; nil signs none

	Proof    *proof.Proof // nil without proof mode
	Settings Settings
	Log      *slog.Logger
}

// Settings may change while the proxy runs.
type Settings struct {
	Namer    graphiti.Namer
	MaxFacts int           // maximum facts of a search
	MaxChars int           // maximum characters of a text
	Timeout  time.Duration // limit of one call to the memory

	Prices  string // file with prices of models, or ""
	Distils string // model that distils facts, or ""
}

// Service runs operations on the memory and on other state of a person. It is safe for concurrent
// use.
type Service struct {
	o   Options
	set atomic.Pointer[Settings]

	base  context.Context // context of background work
	close context.CancelFunc
	ended chan struct{} // closed after background work ends
	wake  chan struct{} // capacity 1: further wakes add nothing

	mu       sync.Mutex     // protects the fields below
	commands map[string]int // running forget commands, by group and scope
}

// New returns a Service. Until Close it continues unfinished forgets.
func New(o Options) *Service {
	sv := &Service{o: o, ended: make(chan struct{}), wake: make(chan struct{}, 1), commands: make(map[string]int)}
	sv.base, sv.close = context.WithCancel(context.Background())
	sv.Set(o.Settings)
	// Ends with Close.
	go sv.finishForgets()
	return sv
}

// Close stops unfinished forgets. The next process continues them.
func (sv *Service) Close() {
	sv.close()
	<-sv.ended
}

// Set changes the settings of later calls.
func (sv *Service) Set(s Settings) { sv.set.Store(&s) }

func (sv *Service) settings() *Settings   { return sv.set.Load() }
func (sv *Service) namer() graphiti.Namer { return sv.settings().Namer }
