// Package service owns what people ask of a memory: to show, search, add to,
// import, export and forget it. The commands and the admin side call the same
// functions.
//
// It must not know flags, HTTP, or how a request is served. Of our packages it
// may import all but proxy and config.
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
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Options configures a Service. Shared, Name and Drop may be nil or empty.
type Options struct {
	Memory   *graphiti.Memory
	Pipeline *capture.Pipeline
	Planner  *inject.Memory
	Facts    *cache.Recall[[]graphiti.Fact]
	State    *cache.State
	Open     *capture.Idle

	Shared *redis.DB // what replicas share
	Name   string    // of this replica

	Multi bool   // every credential is its own tenant
	Owner string // the person of single mode

	// Resolve returns the key of a registered person for any of their
	// identities, and Registered that person's name.
	Resolve    func(user string) string
	Registered func(key string) (name string, ok bool)

	// Drop drops what the proxy holds in memory of turns that have not ended.
	Drop func(of func(*ledger.Turn) bool)

	Settings Settings
	Log      *slog.Logger
}

// Settings may change while the proxy runs.
type Settings struct {
	Namer    graphiti.Namer
	MaxFacts int           // of a search
	MaxChars int           // of a text
	Timeout  time.Duration // of one look into the memory
}

// Service is the memory in all its places. It is safe for concurrent use.
type Service struct {
	o   Options
	set atomic.Pointer[Settings]

	withholding sync.Mutex // one after the other, or an older look would count
}

// New returns a service that withholds what is still to be forgotten.
func New(o Options) *Service {
	sv := &Service{o: o}
	sv.Set(o.Settings)
	if err := sv.withhold(context.Background()); err != nil {
		o.Log.Warn("which groups are to be forgotten is not known; nothing is recalled until it is", "error", err)
	}
	return sv
}

// Set changes the settings from the next call on.
func (sv *Service) Set(s Settings) { sv.set.Store(&s) }

func (sv *Service) settings() *Settings   { return sv.set.Load() }
func (sv *Service) namer() graphiti.Namer { return sv.settings().Namer }
