package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// recallCacheBytes bounds the cache of what searches found.
const recallCacheBytes = 24 << 20

// app is a running proxy: its parts, and the order in which they end.
type app struct {
	cfg     *config.Config
	log     *slog.Logger
	quiet   *slog.Logger // for what may happen with each request
	started time.Time

	people   people
	projects *workspace.Projects             // nil in multi mode, where directories say nothing
	budget   *budget.Budget                  // of what is inspected
	known    *memo.Memo                      // what is known of the conversations of the moment
	consent  atomic.Pointer[datadir.Consent] // nil: none is needed, or there is none
	owner    string                          // the person of single mode
	live     atomic.Pointer[config.Config]   // as it was read last; cfg is as it was at the start
	parts    *parts                          // nil: the memory is off
	service  *service.Service                // nil: the memory is off
	prober   *health.Prober                  // nil: the memory is off
	tracer   trace.Tracer                    // nil: nobody looks
	shared   *redis.DB                       // what replicas share; nil: nothing
	memory   *graphiti.Memory                // nil: off
	store    *embedded.Store                 // where the memory is a file of ours, else nil
	pipeline *capture.Pipeline
	planner  *inject.Memory
	proxy    *proxy.Server
	admin    *admin.Server // nil: off

	holder string        // of data_dir: datadir.Proxy or Command
	lock   *datadir.Lock // nil: data_dir is not used
	files  datadir.Files
	lost   atomic.Int64 // turns that were not kept while memory was off because of a file
	set    memorySet

	stopStack
}

// newApp builds the parts and binds the addresses. What it had built is ended
// again when something fails.
func newApp(cfg *config.Config, log *slog.Logger) (_ *app, err error) {
	a := emptyApp(cfg, log, datadir.Proxy)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Shutdown(context.Background()))
		}
	}()
	t, err := telemetry.New(telemetryOptions(cfg, a.quiet))
	if err != nil {
		return nil, err
	}
	a.OnClose("telemetry", t.Shutdown)
	a.tracer = t.Tracer()
	memory, err := a.openMemory()
	if err != nil {
		return nil, err
	}
	secured, err := cli.ServerCertificate(cfg.TLS.Cert, cfg.TLS.Key, log)
	if err != nil {
		return nil, err
	}
	only := func(listener string) *tls.Config {
		if cfg.TLSFor(listener) {
			return secured
		}
		return nil
	}
	a.proxy, err = proxy.New(proxy.Options{
		Listen:    cfg.Listen,
		Routes:    routes(cfg, memory.Planner != nil),
		Memory:    memory,
		Memo:      a.known,
		ServerTLS: only("client"),
		Budget:    a.budget,

		Meter:  t.Meter(),
		Tracer: a.tracer,
		Log:    a.quiet,
	})
	if err != nil {
		return nil, err
	}
	a.OnClose("listeners", a.closeSides)
	if a.parts != nil {
		a.service.Listen()
		a.setMemory(memory)
		a.watchFiles()
	}
	if err := a.openAdmin(t.Handler(), only("admin")); err != nil {
		return nil, err
	}
	return a, t.ObserveQueue(a.queue)
}

// openStopped opens the memory of a proxy that does not run, for a command.
func openStopped(cfg *config.Config, log *slog.Logger) (*app, error) {
	a := emptyApp(cfg, log, datadir.Command)
	if _, err := a.openMemory(); err != nil {
		return nil, errors.Join(err, a.Shutdown(context.Background()))
	}
	if a.service != nil {
		a.service.Listen()
	}
	return a, nil
}

func emptyApp(cfg *config.Config, log *slog.Logger, holder string) *app {
	a := &app{cfg: cfg, log: log, holder: holder, quiet: telemetry.Quiet(log), started: time.Now(), budget: budget.New(inspectTotal(cfg)), known: memo.New(memo.Size), stopStack: stopStack{Grace: cfg.ShutdownGrace, Log: log}}
	a.live.Store(cfg)
	return a
}

func telemetryOptions(cfg *config.Config, log *slog.Logger) telemetry.Options {
	return telemetry.Options{
		Endpoint: cfg.OTel.Endpoint, Traces: cfg.OTel.Traces, Metrics: cfg.OTel.Metrics, Sample: cfg.OTel.Sample,
		Version: telemetry.Version(), Instance: telemetry.ProcessName(), Log: log,
	}
}

// openMemory opens what remembering needs. Where data_dir cannot be used, and
// nobody else uses it, the proxy goes on without memory.
func (a *app) openMemory() (memory proxy.Memory, err error) {
	cfg := a.cfg
	off := proxy.Memory{}
	switch {
	case cfg.Memory.Backend == "off":
		return off, nil
	case cfg.RemoteMemory() && !cfg.Memory.Consent:
		a.log.Warn("memory is off: memory.consent is not true, so no conversation is sent to the memory's endpoint",
			"endpoint", cfg.Memory.Endpoint, "consent_is_for", cfg.ConsentFor())
		off.Off.Reason = inject.ReasonConsent
		return off, datadir.WithdrawConsent(cfg.DataDir)
	}
	switch a.lock, err = datadir.Acquire(cfg.DataDir, a.holder); {
	case sqlite.IsFault(err):
		return a.startWithout(err), nil
	case err != nil:
		return off, err
	}
	a.OnUnlock("lock", func(context.Context) error { return a.lock.Unlock() })
	before := a.Begun()
	if memory, err = a.openParts(); err == nil || !sqlite.IsFault(err) {
		return memory, err
	}
	a.Undo(before)
	a.parts, a.service, a.prober, a.shared, a.memory, a.store, a.pipeline, a.planner = nil, nil, nil, nil, nil, nil, nil, nil
	return a.startWithout(err), nil
}

// openParts opens what is in data_dir and what works with it, from the memory
// itself to the watcher of answers.
func (a *app) openParts() (proxy.Memory, error) {
	cfg := a.cfg
	off := proxy.Memory{}
	if cfg.RemoteMemory() {
		c, err := datadir.NoteConsent(cfg.DataDir, cfg.Memory.Endpoint)
		if err != nil {
			return off, err
		}
		a.consent.Store(c)
	}
	list, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if err != nil {
		return off, err
	}
	id, namer, err := a.identityOf(cfg)
	if err != nil {
		return off, err
	}
	a.owner = id.Owner
	if a.memory, a.store, err = cli.OpenMemory(memoryOptions(cfg, a.log)); err != nil {
		return off, err
	}
	a.OnClose("memory", func(context.Context) error { return a.memory.Close() })
	state, err := a.openState()
	if err != nil {
		return off, err
	}
	a.register(state.Proofs, list)
	facts, err := cache.NewRecall[[]graphiti.Fact](cache.RecallOptions{
		Fresh: cfg.Recall.CacheTTL, Stale: 10 * cfg.Recall.CacheTTL, MaxBytes: recallCacheBytes, Shared: a.shared,
	})
	if err != nil {
		return off, err
	}
	a.OnClose("recall cache", func(context.Context) error { facts.Close(); return nil })
	if err := state.Generations.Refresh(context.Background()); err != nil {
		a.log.Warn("read forgotten groups failed; nothing is recalled until it succeeds", "error", err)
	}
	if err := a.openPipeline(facts, state); err != nil {
		return off, err
	}
	if err := a.shareGenerations(state.Generations); err != nil {
		return off, err
	}
	pending := proxy.NewPendingTurns(cfg.Ingest.IdleFlush, a.pipeline.Add, a.quiet)
	a.OnClose("open turns", func(context.Context) error { pending.Close(); return nil })
	responses := response.Start(a.quiet, a.budget)
	a.parts = &parts{state: state, facts: facts, pending: pending, responses: responses}
	a.planner = a.newPlanner(cfg, namer)
	a.OnClose("recall", func(context.Context) error { a.planner.Close(); return nil })
	a.OnClose("answers", func(context.Context) error { responses.Close(); return nil }) // before recall, which notes them
	a.service = service.New(service.Options{
		Memory: a.memory, Pipeline: a.pipeline, Planner: a.planner, Facts: facts, State: state,
		Remote: cfg.RemoteMemory(), Shared: a.shared, Name: telemetry.ProcessName(),
		Multi: id.Multi, Owner: a.owner, Resolve: a.people.Resolve, Registered: a.registered,
		People:   registrar{a, state.Proofs},
		Settings: a.serviceSettings(cfg, namer),
		Log:      a.log,
	})
	a.OnClose("forgetting", func(context.Context) error { a.service.Close(); return nil })
	a.prober = health.NewProber(a.memory, a.mayAsk, state.Decisions.Emptied)
	a.OnClose("probe", func(context.Context) error { a.prober.Close(); return nil })
	return a.remembering(cfg, id), nil
}

// shareGenerations has the queue know what was forgotten, and the state the
// newest generation: either file may have been lost.
func (a *app) shareGenerations(g *cache.Generations) error {
	floors, err := g.Floors(context.Background())
	if err != nil {
		return err
	}
	newest, err := a.pipeline.Raise(floors)
	g.AtLeast(newest)
	return err
}

// openPipeline opens the record of turns, and delivers what waits in it.
func (a *app) openPipeline(facts *cache.Recall[[]graphiti.Fact], state *cache.State) (err error) {
	cfg := a.cfg
	o := capture.Options{
		Path:     turnsFile(cfg),
		Memory:   a.memory,
		Apart:    a.memory.Apart(),
		MaxTurns: cfg.Ingest.MaxTurns,
		MaxBytes: cfg.Ingest.MaxBytes,
		MaxAge:   cfg.Ingest.MaxAge,
		MaxBatch: cfg.Ingest.MaxBatch,
		MaxChars: cfg.Ingest.MaxMessageChars,
		Timeout:  cfg.Memory.Timeout,

		Verify:     cfg.Ingest.Verify,
		StallAfter: cfg.Ingest.StallAfter,

		OnStored: facts.DropGroup,
		OnKept: func(t *ledger.Turn, groups []string) {
			c := card.Cards{Lists: state.Snapshots, Own: func(said []ledger.Turn) bool { return a.pipeline.AddAsync(said) }}
			if err := c.Keep(t, groups); err != nil {
				a.quiet.Warn("a turn's entry on the card cannot be kept", "error", err)
			}
		},
		Withheld:    state.Generations.Blocked(),
		Shared:      a.sharedQueue(),
		OnDelivered: telemetry.Deliveries(a.tracer),
		Log:         a.quiet,
	}
	if a.store != nil {
		o.Ledger = a.store.Ledger
	}
	if a.pipeline, err = capture.Open(o); err != nil {
		return err
	}
	a.OnClose("ingestion", a.pipeline.Shutdown)
	return nil
}

// routes are where requests go.
func routes(cfg *config.Config, memory bool) proxy.Routes {
	keys, _ := identity.NewFingerprints("client.keys", cfg.Client.Keys) // checked when they were read
	return proxy.Routes{
		Upstreams: cfg.Upstreams(),
		Logged:    cfg.Log.Requests,
		Limits: proxy.Limits{
			InspectBytes:     cfg.Limits.InspectBytes,
			InspectTotal:     inspectTotal(cfg),
			Messages:         cfg.Limits.Messages,
			HeaderBytes:      cfg.Limits.HeaderBytes,
			HeaderTimeout:    cfg.Limits.HeaderTimeout,
			IdleTimeout:      cfg.Limits.IdleTimeout,
			BodyTimeout:      cfg.Limits.BodyTimeout,
			Connections:      cfg.Limits.Connections,
			PerAddress:       cfg.PerAddress(),
			Allow:            cfg.Networks(func(error) {}), // likewise
			Keys:             keys,
			UpstreamConnect:  cfg.Upstream.ConnectTimeout,
			UpstreamResponse: cfg.Upstream.ResponseTimeout,
			UpstreamIdle:     cfg.Upstream.IdleTimeout,
		},
		WebSocket: webSocket(cfg.WebSocket, memory),
	}
}

// inspectTotal is what may be inspected at the same time.
func inspectTotal(cfg *config.Config) int {
	if cfg.Limits.InspectTotal > 0 {
		return cfg.Limits.InspectTotal
	}
	return budget.Default()
}

// webSocket reads the setting: without memory there is nothing to refuse for.
func webSocket(setting string, memory bool) proxy.WebSocket {
	if !memory {
		return proxy.WebSocketTunnel
	}
	return map[string]proxy.WebSocket{"refuse": proxy.WebSocketRefuse, "intercept": proxy.WebSocketIntercept, "tunnel": proxy.WebSocketTunnel}[setting]
}

func rules(cfg *config.Config) proxy.Rules {
	return proxy.Rules{
		Trusted: cfg.Workspace.Trusted, Ignored: cfg.Workspace.Ignored,
		SkipPaths: cfg.Memory.SkipPaths, SkipModels: cfg.Memory.SkipModels,
	}
}

// memoryOptions says which memory is opened. Nothing is sent to an embedding
// model without consent.
func memoryOptions(cfg *config.Config, log *slog.Logger) cli.MemoryOptions {
	o := cli.MemoryOptions{Kind: cfg.Memory.Backend, Remote: remote.Options{Endpoint: cfg.Memory.Endpoint, APIKey: cfg.Memory.APIKey, GetMemory: cfg.Recall.Query == "get-memory"}, Dir: cfg.DataDir, Log: log}
	switch e := cfg.Embedding; {
	case e.URL == "" || cfg.RemoteMemory():
	case !cfg.Memory.Consent:
		log.Warn("embeddings are off: memory.consent is not true, so no conversation is sent to embedding.url", "url", e.URL)
	default:
		o.Embedding = embedded.Embedding{URL: e.URL, Model: e.Model, APIKey: e.APIKey}
	}
	return o
}

func (a *app) openAdmin(metrics http.Handler, secured *tls.Config) (err error) {
	if a.cfg.Admin.Listen == "off" {
		return nil
	}
	o := admin.Options{
		TLS:     secured,
		Listen:  a.cfg.Admin.Listen,
		Token:   a.cfg.Admin.Token,
		Host:    a.host(),
		Metrics: metrics,
		Log:     a.log,
		Audit:   telemetry.Always(a.log),
	}
	if a.lock != nil {
		o.Instance = a.lock.ID
		if o.Secret, err = datadir.MakeSecret(a.cfg.DataDir); err != nil {
			a.log.Warn("commands cannot tell that this is the proxy that they mean, and give it no token", "error", err)
		}
	}
	if a.admin, err = admin.New(o); err != nil {
		return err
	}
	if a.lock != nil {
		a.lock.Serving(a.admin.Addr().String())
	}
	return nil
}

// adminGrace is how long the end waits for calls of the admin side.
const adminGrace = time.Second

// closeSides has both sides take nothing more, at the same time: a call of the
// admin side, or a connection to it that says nothing, must not have clients
// come in meanwhile.
func (a *app) closeSides(ctx context.Context) error {
	done := make(chan struct{})
	// Ends within adminGrace.
	go func() {
		defer close(done)
		if a.admin == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, adminGrace)
		defer cancel()
		if err := a.admin.Shutdown(ctx); err != nil {
			a.log.Info("calls of the admin side were cut off", "error", err)
		}
	}()
	err := a.proxy.Shutdown(ctx)
	<-done
	return err
}

// Serve serves until Shutdown, or until one side fails.
func (a *app) Serve() error {
	failed := make(chan error, 2)
	sides := 1
	// Both end with Shutdown.
	go func() { failed <- a.proxy.Serve() }()
	if a.admin != nil {
		sides++
		go func() { failed <- a.admin.Serve() }()
	}
	for range sides {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// host is what operations run on.
func (a *app) host() *service.Host {
	h := &service.Host{Memory: a.service, Status: a.status, Counts: func(context.Context) (capture.QueueStatus, error) { return a.queue(), nil }}
	if a.pipeline != nil {
		h.Queue = a.pipeline
	}
	return h
}

func (a *app) queue() capture.QueueStatus {
	if a.pipeline == nil {
		s := capture.QueueStatus{Delivers: true} // all that there is
		a.addFileFaults(&s)
		return s
	}
	s := a.pipeline.Status()
	s.GivenUp = int(a.parts.responses.Dropped())
	a.addFileFaults(&s)
	return s
}
