// Package service owns the operations that people run on a memory: show, list, search,
// promote, import, export and forget. It owns those on the queue of its turns, too. Each
// operation is one value in one table, which the admin side and the commands mount.
//
// It must not know flags, HTTP, or how a request is served. Of our packages it
// may import cache and capture with theirs, the memories, inject and health.
package service

import (
	"context"
	"hash/maphash"
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

	// Resolve returns the key of a registered person for any of their identities.
	// Registered returns that person's name.
	Resolve    func(user string) string
	Registered func(key string) (name string, ok bool)

	People People // those who are registered

	Settings Settings
	Log      *slog.Logger
}

// Settings may change while the proxy runs.
type Settings struct {
	Namer    graphiti.Namer
	MaxFacts int           // most facts of a search
	MaxChars int           // most characters of a text
	Timeout  time.Duration // of one call to the memory

	Directives bool // Stated looks for directives
	Remember   bool // Stated looks for what a person asks to have remembered
}

// Service runs operations on the memory, and on what else is kept of a person. It is
// safe for concurrent use.
type Service struct {
	o   Options
	set atomic.Pointer[Settings]

	seed maphash.Seed // of what stands for names

	base  context.Context // of what is done without being asked
	close context.CancelFunc
	ended chan struct{} // closed when that has ended
	wake  chan struct{} // more than one says nothing new

	hearings sync.WaitGroup // messages that ask to forget something

	mu       sync.Mutex     // guards what follows
	commands map[string]int // that forget something now, by what it is
}

// New returns a Service. Until Close it goes on with forgets that are not finished.
func New(o Options) *Service {
	sv := &Service{o: o, seed: maphash.MakeSeed(), ended: make(chan struct{}), wake: make(chan struct{}, 1), commands: make(map[string]int)}
	sv.base, sv.close = context.WithCancel(context.Background())
	sv.Set(o.Settings)
	o.State.Generations.OnBlocked(o.Pipeline.Withhold)
	// Ends with Close.
	go sv.finishForgets()
	return sv
}

// Close ends the unfinished forgets of this process. The next process goes on with them.
func (sv *Service) Close() {
	sv.close()
	<-sv.ended
	sv.hearings.Wait()
}

// Set changes the settings from the next call on.
func (sv *Service) Set(s Settings) { sv.set.Store(&s) }

func (sv *Service) settings() *Settings   { return sv.set.Load() }
func (sv *Service) namer() graphiti.Namer { return sv.settings().Namer }
