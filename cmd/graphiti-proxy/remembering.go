package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// remembering is the memory of a proxy: the parts that opener.openParts opens. They survive
// a reload.
type remembering struct {
	*settings
	log *slog.Logger

	callers callers
	people  *people
	consent consent
	files   *files

	shared    *postgres.Server // that replicas share; nil without
	backend   cli.Backend
	others    *embedded.Others // groups of other programs in Graphiti; nil without Graphiti
	facts     facts
	state     *cache.State
	pipeline  *capture.Pipeline
	planner   *inject.Planner
	proof     *proof.Proof // nil without proof mode
	standing  *standing.Keeper
	service   *service.Service
	prober    *health.Prober
	pending   *proxy.PendingTurns
	responses *response.Readers

	stop *stopStack
}

func (r *remembering) serving() proxy.Memory { return r.files.wanted }

func (r *remembering) start(p *proxy.Server) {
	r.files.proxy = p
	r.pipeline.OnFate(p.Observer().Message)
	r.pending.OnFate(p.Observer().Message)
	r.facts.start(r)
	if r.shared != nil {
		r.shared.OnChange(r.service.Changed)
		r.stop.OnClose("rates", closes(p.ShareRates(r.state.ShareRates)))
	}
	r.files.watch(r.stop, r.state, r.pipeline)
}

func (r *remembering) warm(ctx context.Context) {
	if err := r.backend.Warm(ctx); err != nil {
		r.log.Warn("index the memory failed; the first searches wait for it", "error", err)
	}
}

func (r *remembering) reload(cfg *config.Config, rest func() error) error {
	list, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if err != nil {
		return err
	}
	var id identity.Settings
	var namer graphiti.Namer
	err = r.people.reload(list, func() error {
		if id, namer, err = r.callers.settings(cfg); err != nil {
			return err
		}
		return rest()
	})
	if err != nil {
		return err
	}
	r.planner.Set(r.groups(cfg, namer), r.planning(cfg))
	r.backend.Pause(!cfg.Consented() || cfg.Embedding.URL != r.cfg.Embedding.URL)
	r.facts.set(cfg)
	allowed := r.consent.reload(cfg)
	if allowed {
		r.files.set(r.proxyMemory(cfg, id))
	} else {
		r.files.set(proxy.Memory{Off: proxy.Off{Reason: inject.ReasonConsent}})
	}
	r.service.Set(serviceSettings(cfg, namer))
	r.standing.Set(standingConfig(cfg, namer))
	if r.others != nil {
		r.others.Set(allowed, cfg.Recall.Wait)
	}
	r.pipeline.Set(r.ingestBounds(cfg), !allowed)
	return nil
}

func (r *remembering) host() *service.Host {
	return &service.Host{Memory: r.service, Queue: r.pipeline, Stored: r.backend.Facts.Stored, Counts: func(context.Context) (capture.QueueStatus, error) { return r.queue(), nil }}
}

func (r *remembering) queue() capture.QueueStatus {
	s := r.pipeline.Status()
	s.GivenUp = int(r.responses.Dropped())
	if r.facts.Distiller != nil {
		s.Distilled = r.facts.Total()
	}
	r.files.addTo(&s)
	if r.shared != nil {
		if f := r.shared.Fault(); f != nil {
			s.SharedDown = &f.Since
		}
	}
	return s
}

func (r *remembering) describe(ctx context.Context, s *health.Status, fresh bool) {
	read := r.live.Load()
	m := &s.Memory
	// Consent can be withdrawn and given again while the proxy runs.
	s.Waiting = slices.DeleteFunc(s.Waiting, func(key string) bool { return key == "memory.consent" })
	if s.Identity == "single" {
		s.Owner = r.service.Owner()
	}
	s.Unconfirmed = r.people.unconfirmed()
	s.Apart = r.callers.projects.Apart()
	s.Blocked = r.state.Generations.Blocked()
	m.Distil = r.facts.status(ctx)
	s.Bill = r.service.Bill(ctx)
	s.Queue = r.queue()
	m.NotKept, m.InMemory = s.Queue.NotKept, s.Queue.InMemory
	faults := r.files.faults()
	switch {
	case slices.ContainsFunc(faults, (*database.Fault).Lasting):
		m.WithoutFiles(faults)
	case r.moved(read):
		m.Moved(read.Memory.Endpoint)
	case !r.consent.given(read):
		m.WithoutConsent(true, read.Memory.Endpoint, read.ConsentFor())
	default:
		if fresh {
			r.prober.Ask(ctx)
			s.Queue = r.queue()
		}
		m.Judge(r.prober.Last(), &s.Queue, faults)
	}
}

// decides reports whether a message states a decision.
func (r *remembering) decides(ctx context.Context, said string) bool {
	states := r.backend.Memory.States
	return card.Decides(said) && (states == nil || states(ctx, said))
}

// groups are the groups of a configuration.
type groups struct {
	graphiti.Namer
	reads func(w graphiti.Who, about bool) []graphiti.Target
}

func (g groups) Reads(w graphiti.Who, about bool) []graphiti.Target { return g.reads(w, about) }

func (r *remembering) groups(cfg *config.Config, namer graphiti.Namer) groups {
	return groups{namer, func(w graphiti.Who, about bool) []graphiti.Target {
		if !about && w.Workspace != "" { // texts promoted for everywhere count in projects, too
			g, ok := namer.Group(graphiti.ScopeUser, w)
			about = ok && r.pipeline.Promoted(g)
		}
		if r.others != nil {
			own := slices.DeleteFunc(namer.Reads(w, true), func(t graphiti.Target) bool { return t.Scope == graphiti.ScopeSession })
			r.pipeline.Import(ledger.Turn{Owner: w.Owner(), Workspace: w.Workspace, Targets: own})
		}
		return r.state.Generations.Recallable(searched(cfg, namer, r.others)(w, about))
	}}
}

// searched returns the groups for a recall. With Graphiti, it adds those of other programs.
func searched(cfg *config.Config, namer graphiti.Namer, others *embedded.Others) func(graphiti.Who, bool) []graphiti.Target {
	return func(w graphiti.Who, about bool) []graphiti.Target {
		reads := namer.Reads(w, about)
		if own := len(reads); cfg.RemoteMemory() && !w.Alone {
			reads = namer.AlsoReads(w, reads)
			others.Add(reads[own:])
		}
		return reads
	}
}

// proxyMemory returns the settings and the parts of memory in a proxy, by a configuration.
func (r *remembering) proxyMemory(cfg *config.Config, id identity.Settings) proxy.Memory {
	var providers proxy.Providers
	if cfg.Distil.Upstream {
		providers = &r.facts.providers
	}
	return proxy.Memory{
		MemorySettings: proxy.MemorySettings{
			Identity:     id,
			Rules:        rules(cfg),
			Recall:       cfg.Recall.Enabled,
			Ingest:       cfg.Ingest.Enabled,
			Note:         proxy.Note{Git: cfg.Ingest.GitMetadata, Work: cfg.Ingest.Work},
			Timeout:      cfg.Recall.Timeout,
			DropThinking: cfg.Memory.DropBoundThinking,
		},
		Services: proxy.Services{
			Planner:     r.planner,
			Sessions:    r.state.Sessions,
			Turns:       r.pipeline,
			Doubts:      r.pipeline,
			Standing:    r.standing,
			Tenants:     r.state.Tenants,
			Generations: r.state.Generations,
			Figures:     r.state.Figures,
			Providers:   providers,
			Responses:   r.responses,
			Pending:     r.pending,
		},
	}
}
