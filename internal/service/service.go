// Package service owns what people ask of a memory: to show, list, search, add
// to, import, export and forget it, and of its queue. Each operation is one value in
// one table, which the admin side and the commands mount.
//
// It must not know flags, HTTP, or how a request is served. Of our packages it
// may import cache and capture with theirs, the memories, inject and health.
package service

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Options configures a Service. Shared and Name may be nil or empty.
type Options struct {
	Memory   *graphiti.Memory
	Pipeline *capture.Pipeline
	Planner  *inject.Memory
	Facts    *cache.Recall[[]graphiti.Fact]
	State    *cache.State

	Remote bool      // the memory is not a file of ours
	Shared *redis.DB // what replicas share
	Name   string    // of this replica

	Multi bool   // every credential is its own tenant
	Owner string // the person of single mode

	// Resolve returns the key of a registered person for any of their
	// identities, and Registered that person's name.
	Resolve    func(user string) string
	Registered func(key string) (name string, ok bool)

	People People // those who are registered

	Settings Settings
	Log      *slog.Logger
}

// Settings may change while the proxy runs.
type Settings struct {
	Namer    graphiti.Namer
	MaxFacts int           // of a search
	MaxChars int           // of a text
	Timeout  time.Duration // of one look into the memory

	Directives bool // Stated looks for them
	Remember   bool // and for what a person asks to have remembered
}

// Service is the memory in all its places. It is safe for concurrent use.
type Service struct {
	o   Options
	set atomic.Pointer[Settings]

	base  context.Context // of what is done without being asked
	close context.CancelFunc
	ended chan struct{} // closed when that has ended
	wake  chan struct{} // more than one says nothing new

	mu       sync.Mutex     // guards what follows
	commands map[string]int // that forget something now, by what it is
}

// New returns a service that goes on with what is still to be forgotten, until
// Close.
func New(o Options) *Service {
	sv := &Service{o: o, ended: make(chan struct{}), wake: make(chan struct{}, 1), commands: make(map[string]int)}
	sv.base, sv.close = context.WithCancel(context.Background())
	sv.Set(o.Settings)
	o.State.Generations.OnBlocked(o.Pipeline.Withhold)
	// Ends with Close.
	go sv.finishForgets()
	return sv
}

// Close ends what is done without being asked. It goes on in the next process.
func (sv *Service) Close() {
	sv.close()
	<-sv.ended
}

// Set changes the settings from the next call on.
func (sv *Service) Set(s Settings) { sv.set.Store(&s) }

func (sv *Service) settings() *Settings   { return sv.set.Load() }
func (sv *Service) namer() graphiti.Namer { return sv.settings().Namer }
