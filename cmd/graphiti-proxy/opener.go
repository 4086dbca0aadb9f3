package main

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// opener opens a memory, for a proxy or for a command.
type opener struct {
	*settings
	log    *slog.Logger
	quiet  *slog.Logger               // for messages that each request may cause
	tracer trace.Tracer               // nil without tracing
	called func(call, outcome string) // counts calls to a service; nil in commands
	budget *budget.Budget             // for inspected bodies
	known  *memo.Memo                 // data about current conversations
	files  *files
	stop   *stopStack // receives the parts

	busy bool // result of open: the memory can be opened later
}

// open opens the memory. If data_dir cannot be used, and no other process uses it, the
// proxy continues without memory. If a file is only busy, the memory opens later. lock is
// nil if data_dir is not in use.
func (o *opener) open(holder string) (_ memory, lock *datadir.Lock, err error) {
	cfg := o.cfg
	switch {
	case cfg.Memory.Backend == "off":
		return unwanted(o.files), nil, nil
	case cfg.RemoteMemory() && !cfg.Consented():
		o.log.Warn("memory is off: memory.consent does not cover the endpoint, so no conversation is sent there",
			"endpoint", cfg.Memory.Endpoint, "consent_is_for", cfg.ConsentFor(), "would_send", sentToMemory)
		return withoutConsent(o.settings, o.files), nil, nil
	}
	switch lock, err = datadir.Acquire(cfg.DataDir, holder); {
	case sqlite.IsFault(err):
		o.files.broken(err, false)
		return withoutFiles(o.files), nil, nil
	case err != nil:
		return nil, nil, err
	}
	o.stop.OnUnlock("lock", closing(lock.Unlock))
	before := o.stop.Begun()
	opened, err := o.openParts()
	if sqlite.IsFault(err) {
		o.stop.Undo(before)
		o.busy = sqlite.IsBusy(err) && holder == datadir.Proxy
		o.files.broken(err, o.busy)
		return withoutFiles(o.files), lock, nil
	} else if err != nil {
		return nil, nil, err
	}
	return opened, lock, nil
}

// openParts opens the files of data_dir and the parts that use them, from the memory itself
// to the watcher of answers.
func (o *opener) openParts() (*remembering, error) {
	cfg := o.cfg
	r := &remembering{settings: o.settings, log: o.log, stop: o.stop, consent: consent{settings: o.settings, log: o.log}, files: o.files}
	r.consent.explain(cfg)
	list, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if err != nil {
		return nil, err
	}
	owner, err := ownerOf(cfg, o.log)
	if err != nil {
		return nil, err
	}
	if err = o.openMemory(r); err != nil {
		return nil, err
	}
	if err = o.openState(r); err != nil {
		return nil, err
	}
	state := r.state
	r.people = openPeople(state.Proofs, list, o.log)
	r.callers = newCallers(cfg, owner, &r.people.Registry, o.log)
	id, namer, err := r.callers.settings(cfg)
	if err != nil {
		return nil, err
	}
	if r.pipeline, err = o.openPipeline(r, state); err != nil {
		return nil, err
	}
	r.pending = proxy.NewPendingTurns(cfg.Ingest.IdleFlush, r.pipeline.Add, o.quiet)
	o.stop.OnClose("open turns", closes(r.pending.Close))
	r.responses = response.New(o.quiet, o.budget)
	r.standing = standing.New(standing.Options{
		Memory: r.backend.Memory, Pipeline: r.pipeline, State: state, Config: standingConfig(cfg, namer), Log: o.log,
		Ended: func(ctx context.Context, owner, program string, e standing.Ending) string {
			return r.service.NoteEnded(ctx, owner, program, e)
		},
	})
	r.service = service.New(service.Options{
		Memory: r.backend.Memory, Pipeline: r.pipeline, Planner: func() *inject.Planner { return r.planner }, Standing: r.standing, State: state,
		Graph: r.backend.Graph, Multi: id.Multi, Owner: owner, People: r.people,
		Settings: serviceSettings(cfg, namer), Secret: o.secret(), Proof: r.proof,
		Log: o.log,
	})
	r.planner = inject.New(inject.Services{
		Search:    state.Ended.Search(r.backend.Memory),
		Decisions: state.Decisions,
		Opening:   r.standing,
		Snapshots: state.Snapshots,
		Redact:    r.pipeline.RedactedBy, Decides: r.decides,
		Proof: r.proof,
		Now:   time.Now,
		Log:   o.quiet,
	}, r.groups(cfg, namer), o.planning(cfg))
	o.stop.OnClose("recall", closes(r.planner.Close))
	o.stop.OnClose("answers", closes(r.responses.Close)) // before recall, which notes them
	o.stop.OnClose("forgetting", closes(r.service.Close))
	o.stop.OnClose("messages to the memory", closes(r.standing.Close))
	allowed := func() bool { return r.consent.given(o.live.Load()) }
	r.prober = health.NewProber(cmp.Or(r.backend.Graph, r.backend.Memory), allowed)
	o.stop.OnClose("probe", closes(r.prober.Close))
	r.files.wanted = r.proxyMemory(cfg, id)
	return r, nil
}

// openMemory opens the store, and the client of Graphiti if there is one.
func (o *opener) openMemory(r *remembering) (err error) {
	if r.shared, err = openPostgres(o.cfg, o.live.Load, o.log); err != nil {
		return err
	}
	if r.shared != nil {
		o.stop.OnClose("postgres", closing(r.shared.Close))
	}
	called := func(call string, outcome remote.Outcome) {
		if o.called != nil {
			o.called(call, string(outcome))
		}
	}
	if r.backend, err = cli.OpenMemory(o.cfg, o.live.Load, memoryIn(r.shared), called, o.log); err != nil {
		return err
	}
	o.stop.OnClose("memory", closing(r.backend.Memory.Close))
	if g := r.backend.Graph; g != nil {
		o.stop.OnClose("graphiti", closing(g.Close))
		r.others = r.backend.Facts.OpenOthers(filepath.Join(o.cfg.DataDir, "others.db"), g, o.quiet)
		r.others.Set(true, o.cfg.Recall.Wait)
		o.stop.OnClose("groups of others", closing(r.others.Close))
		r.backend.Memory.Searcher = r.others
	}
	return nil
}

// secret returns the secret that signs exports, or nil.
func (o *opener) secret() []byte {
	secret, err := datadir.MakeSecret(o.cfg.DataDir)
	if err != nil {
		o.log.Warn("make the secret of data_dir failed, rules and preferences of an import wait", "error", err)
	}
	return secret
}

// openState opens the store of blocks and sessions, and proof mode.
func (o *opener) openState(r *remembering) error {
	ttl := o.cfg.Recall.StickyTTL
	of := retention(o.cfg)
	for _, retain := range []time.Duration{of.Shortest(), of.Facts} { // blocks and notes quote messages and facts
		if retain > 0 {
			ttl = min(ttl, retain)
		}
	}
	var state *cache.State
	var err error
	if r.shared != nil {
		state = cache.Share(r.shared, ttl, o.quiet)
	} else if state, err = cache.OpenState(filepath.Join(o.cfg.DataDir, "state.db"), ttl); err != nil {
		return err
	}
	r.state = state
	o.stop.OnClose("state", closing(state.Close))
	state.Figures.Start(o.quiet)
	o.stop.OnClose("figures", closes(state.Figures.Close))
	if err := state.Generations.Refresh(context.Background()); err != nil {
		o.log.Warn("read forgotten groups failed, recall is off until it succeeds", "error", err)
	}
	r.proof = proof.Open(state.Trials, proof.Terms{Share: o.cfg.Proof.Share, Number: o.cfg.Proof.Number, Secret: o.secret()}, o.quiet)
	state.Figures.Proof = r.proof
	o.stop.OnClose("proof", closes(r.proof.Close))
	return nil
}

// openPipeline opens the record of turns, and starts the delivery of its waiting turns.
func (o *opener) openPipeline(r *remembering, state *cache.State) (p *capture.Pipeline, err error) {
	cfg, b := o.cfg, &r.backend
	cards := card.Cards{Lists: state.Snapshots}
	options := capture.Options{
		Bounds: r.ingestBounds(cfg),
		Destination: capture.Destination{Ledger: b.Ledger, Disk: func(ctx context.Context) (int64, error) {
			s, err := b.Facts.Stored(ctx)
			return s.Bytes - s.Free + datadir.Size(cfg.DataDir), err
		}},
		Events: capture.Events{
			OnKept: func(t *ledger.Turn, groups []string) {
				if err := cards.Keep(t, groups); err != nil {
					o.quiet.Warn("store a turn's card entry failed", "error", err)
				}
			},
			OnDelivered: telemetry.Deliveries(o.tracer),
		},
		Log: o.quiet,
	}
	if r.shared != nil {
		options.Lease, options.Journal = r.shared, filepath.Join(cfg.DataDir, "waiting.db")
	}
	if b.Graph != nil {
		options.Graph, options.Facts, options.Apart, options.States = b.Graph, b.Facts, b.Graph.Apart(), b.Memory.States
	}
	if p, err = capture.Open(options); err != nil {
		return nil, err
	}
	o.stop.OnClose("ingestion", p.Shutdown)
	return p, shareGenerations(p, state.Generations)
}

// shareGenerations gives the generations of forgotten groups to the queue, and the newest
// generation to the state: either file may have been lost.
func shareGenerations(p *capture.Pipeline, g *cache.Generations) error {
	floors, err := g.Floors(context.Background())
	if err != nil {
		return err
	}
	newest, err := p.Raise(floors)
	g.AtLeast(newest)
	return err
}
