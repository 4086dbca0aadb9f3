package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// app is a proxy: the client side, the admin side and the memory.
type app struct {
	*settings
	log     *slog.Logger
	started time.Time

	files  *files
	now    atomic.Pointer[memory] // current memory
	hosted *service.Host          // for the admin side
	proxy  *proxy.Server
	admin  *admin.Server // nil if it is off

	reloading sync.Mutex // held while a configuration or the memory changes

	stopStack
}

func (a *app) become(m memory) { a.now.Store(&m) }
func (a *app) memory() memory  { return *a.now.Load() }

// memory is the memory of a proxy: remembering or noMemory.
type memory interface {
	// serving returns the memory for a new proxy.
	serving() proxy.Memory

	// start starts the work outside of the requests of p, until the app ends.
	start(p *proxy.Server)

	// warm builds the index for the first searches, and returns when it is ready.
	warm(ctx context.Context)

	// reload applies a configuration. It runs rest after all its own steps that can fail,
	// and before the first change.
	reload(cfg *config.Config, rest func() error) error

	// host returns the host of the operations.
	host() *service.Host

	// describe adds the state of the memory to a status. It calls the memory, and waits for
	// it, only if fresh is set.
	describe(ctx context.Context, s *health.Status, fresh bool)

	queue() capture.QueueStatus
}

// newApp builds the parts and binds the addresses. If it fails, it ends the parts that it
// has built.
func newApp(cfg *config.Config, log *slog.Logger) (_ *app, err error) {
	quiet := telemetry.Quiet(log)
	a := &app{
		settings: newSettings(cfg), log: log, started: time.Now(), files: &files{cfg: cfg, log: log},
		stopStack: stopStack{Grace: cfg.ShutdownGrace, Log: log},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Shutdown(context.Background()))
		}
	}()
	t, err := telemetry.New(telemetryOptions(cfg, quiet))
	if err != nil {
		return nil, err
	}
	a.OnClose("telemetry", t.Shutdown)
	remember, err := a.opener(t, quiet)
	if err != nil {
		return nil, err
	}
	memory, lock, err := remember.open(datadir.Proxy)
	if err != nil {
		return nil, err
	}
	a.become(memory)
	if lock != nil {
		a.startBackups()
	}
	only, err := certified(cfg, log)
	if err != nil {
		return nil, err
	}
	a.proxy, err = proxy.New(proxy.Options{
		Listen:    cfg.Listen,
		Routes:    a.routes(cfg),
		Memory:    memory.serving(),
		Memo:      remember.known,
		ServerTLS: only("client"),
		Budget:    remember.budget,

		Meter:  t.Meter(),
		Tracer: remember.tracer,
		Log:    quiet,
	})
	if err != nil {
		return nil, err
	}
	if lock != nil && cfg.Admin.Listen != "off" {
		a.startRequestLog()
	}
	a.OnClose("admin side", a.closeAdmin)
	a.OnClose("listeners", a.proxy.Shutdown)
	a.hosted = a.host()
	memory.start(a.proxy)
	if remember.busy {
		a.awaitMemory(*remember)
	}
	if cfg.Admin.Listen != "off" {
		o := adminOptions(cfg, log, a.hosted, t.Handler(), only("admin"))
		o.Project = projectFinder(a.live.Load)
		if _, ok := memory.(*remembering); (ok || remember.busy) && cfg.Identity.Mode == "multi" {
			o.Callers = a.holder
		}
		o.DataDir = lock.Dir()
		if a.admin, err = admin.New(o); err != nil {
			return nil, err
		}
	}
	return a, errors.Join(t.ObserveQueue(func() capture.QueueStatus { return a.memory().queue() }), t.ObserveMemory(a.gauges), t.ObserveStored(a.stored))
}

// certified returns the TLS configuration of each listener, nil for one without TLS.
func certified(cfg *config.Config, log *slog.Logger) (func(listener string) *tls.Config, error) {
	secured, err := cli.ServerCertificate(cfg.TLS.Cert, cfg.TLS.Key, log)
	return func(listener string) *tls.Config {
		if cfg.TLSFor(listener) {
			return secured
		}
		return nil
	}, err
}

func (a *app) opener(t *telemetry.Telemetry, quiet *slog.Logger) (*opener, error) {
	called, err := t.CountCalls()
	if err != nil {
		return nil, err
	}
	return &opener{
		settings: a.settings, log: a.log, quiet: quiet, tracer: t.Tracer(), budget: budget.New(inspectTotal(a.cfg)), known: memo.New(memo.Size),
		called: called, files: a.files, stop: &a.stopStack,
	}, nil
}

// gauges returns the results of the last check of a memory service.
func (a *app) gauges() map[string]bool {
	s := a.status(context.Background(), false)
	return s.Memory.Gauges()
}

// stored returns the extent of the memory, with the files of data_dir.
func (a *app) stored(ctx context.Context) (s graphiti.Stored, err error) {
	if h := a.hosted.Now(); h.Stored != nil {
		s, err = h.Stored(ctx)
		s.Bytes += datadir.Size(a.cfg.DataDir)
		s.Arms = h.Memory.Arms(ctx)
	}
	return s, err
}

// adminGrace bounds the wait for calls of the admin side at the end.
const adminGrace = time.Second

// closeAdmin ends the admin side, after the client side.
func (a *app) closeAdmin(ctx context.Context) error {
	if a.admin == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminGrace)
	defer cancel()
	if err := a.admin.Shutdown(ctx); err != nil {
		a.log.Info("calls of the admin side were cut off", "error", err)
	}
	return nil
}

// Serve serves until Shutdown, or until one side fails.
func (a *app) Serve() error {
	sides := []func() error{a.proxy.Serve}
	if a.admin != nil {
		sides = append(sides, a.admin.Serve)
	}
	failed := make(chan error, len(sides))
	for _, serve := range sides {
		// Ends with Shutdown.
		go func() { failed <- serve() }()
	}
	for range sides {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// reload applies the changes of a new configuration, and returns the changed settings that
// wait for a restart. A mistake in it leaves everything unchanged: all steps that can fail
// come before the first change.
func (a *app) reload(cfg *config.Config) (waiting []string, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if cfg.Identity.Mode != a.cfg.Identity.Mode || cfg.Identity.GroupIDs != a.cfg.Identity.GroupIDs || cfg.Identity.WorkspaceIDs != a.cfg.Identity.WorkspaceIDs || cfg.Identity.Owner != a.cfg.Identity.Owner {
		return nil, errors.New("identity.mode, identity.owner, identity.group_ids and identity.workspace_ids determine the owners of memories; restart the proxy to change them")
	}
	if listen := a.cfg.Admin.Listen; listen != "off" && cfg.Admin.Token == "" && !config.Loopback(listen) {
		return nil, fmt.Errorf("admin.token: the admin side listens on %s until a restart, which is open to other machines; set a token", listen)
	}
	if err := a.memory().reload(cfg, func() error { return a.proxy.SetRoutes(a.routes(cfg)) }); err != nil {
		return nil, err
	}
	if a.admin != nil {
		a.admin.SetToken(cfg.Admin.Token)
	}
	a.live.Store(cfg)
	return a.status(context.Background(), false).Waiting, nil
}

func (a *app) host() *service.Host {
	h := a.memory().host()
	h.Status = a.status
	h.Link = func(c service.Caller) service.Link { return a.admin.Link(c) }    // a.admin is not set yet
	h.Passed = func(after, limit int, owner string) []graphiti.LoggedRequest { // a.proxy is not set yet
		return a.proxy.Observer().Passed(after, limit, owner)
	}
	return h
}

// status returns the state of the proxy in words. The state of the memory is the last known
// one, or with fresh the current one. The backend and endpoint are the effective ones, even
// if the file has changed.
func (a *app) status(ctx context.Context, fresh bool) health.Status {
	read := a.live.Load()
	s := health.Status{
		Version: telemetry.Version(), Started: a.started, Ready: true, Listen: listening(a.cfg.Listen, a.proxy.Addr()), Inspector: a.inspector(),
		TLS: a.cfg.TLSFor("client"), OpenAI: read.Upstream.OpenAI, Anthropic: read.Upstream.Anthropic, Upstreams: read.Upstreams(),
		Identity: a.cfg.Identity.Mode, DataDir: a.cfg.DataDir,
		Memory: health.MemoryStatus{
			Backend: a.cfg.Memory.Backend, Where: a.cfg.Memory.Endpoint, State: health.StateWorking,
			Recall: read.Recall.Enabled, Ingest: read.Ingest.Enabled, Outcomes: a.proxy.Observer().Outcomes(),
		},
		Messages: a.proxy.Observer().Messages(),
		Clients:  a.proxy.Observer().Clients(),
		Waiting:  config.NeedRestart(a.cfg, read),
	}
	if s.Memory.Backend == "embedded" {
		s.Memory.Where = cli.StorePlace(a.cfg)
	}
	a.memory().describe(ctx, &s, fresh)
	return s
}
