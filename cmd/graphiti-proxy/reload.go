package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/response"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// parts do the remembering, and stay over a reload.
type parts struct {
	state     *cache.State
	facts     *cache.Recall[[]graphiti.Fact]
	pending   *proxy.PendingTurns
	responses *response.Workers
}

// opening asks the service, which is there before the first request.
type opening struct{ *app }

func (o opening) Standing(ctx context.Context, w graphiti.Who) ([]graphiti.Fact, error) {
	return o.service.Standing(ctx, w)
}

func (o opening) Summary(ctx context.Context, w graphiti.Who, session string) (about, open string, err error) {
	return o.service.Summary(ctx, w, session)
}

// newPlanner makes what decides what goes into requests.
func (a *app) newPlanner(cfg *config.Config, namer graphiti.Namer) *inject.Memory {
	return inject.New(inject.Services{
		Search:    a.memory,
		Facts:     a.parts.facts,
		Decisions: a.parts.state.Decisions,
		Snapshots: a.parts.state.Snapshots,
		Opening:   opening{a},
		Redact:    a.pipeline.RedactedBy,
		Memo:      a.known,
		Log:       a.quiet,
	}, a.groups(cfg, namer), a.planning(cfg))
}

// planning is how is decided what goes into requests.
func (a *app) planning(cfg *config.Config) inject.Settings {
	return inject.Settings{
		Timeout:    cfg.Recall.Timeout,
		Background: cfg.Recall.BackgroundTimeout,
		MaxFacts:   cfg.Recall.MaxFacts,
		Asked:      cfg.FactsAsked(),
		MaxChars:   cfg.Recall.MaxChars,
		StaleAfter: cfg.Recall.StaleAfter,
		Guard:      inject.Guard(cfg.Recall.InstructionGuard),
		MinScore:   cfg.Recall.MinScore,
		Drift:      cfg.Recall.DriftThreshold,
		Share:      cfg.Recall.ContextShare,
		Window:     cfg.Recall.ContextWindow,
		NoWait:     !cfg.Recall.Wait,
		CardChars:  cfg.Recall.CardChars,
		Resume:     cfg.Recall.ResumeWithin,
		Prefetch:   !cfg.RemoteMemory() && !cfg.Recall.Wait || cfg.RemoteMemory() && cfg.Memory.Consent && !moved(a.cfg, cfg),
		Similar:    cfg.Recall.PrefetchSimilarity,
		Compaction: cfg.Recall.Compaction,
		Unseen:     cfg.Ingest.BackfillTurns,
	}
}

// groups are those that a configuration names.
type groups struct {
	graphiti.Namer
	reads func(w graphiti.Who, about bool) []graphiti.Target
}

func (g groups) Reads(w graphiti.Who, about bool) []graphiti.Target { return g.reads(w, about) }

func (a *app) groups(cfg *config.Config, namer graphiti.Namer) groups {
	return groups{namer, func(w graphiti.Who, about bool) []graphiti.Target {
		if !about && w.Workspace != "" { // what was promoted for everywhere counts everywhere
			g, ok := namer.Group(graphiti.ScopeUser, w)
			about = ok && a.pipeline.Promoted(g)
		}
		return a.service.Recallable(searched(cfg, namer, a.pipeline.Promoted)(w, about))
	}}
}

// searched are the groups that a recall searches: of a service those that may
// hold something.
func searched(cfg *config.Config, namer graphiti.Namer, promoted func(group string) bool) func(graphiti.Who, bool) []graphiti.Target {
	return func(w graphiti.Who, about bool) []graphiti.Target {
		reads := namer.Reads(w, about)
		if cfg.RemoteMemory() {
			own := slices.DeleteFunc(reads, func(t graphiti.Target) bool { return !namer.MayHold(t, promoted) })
			return namer.AlsoReads(w, own)
		}
		return reads
	}
}

// ownedTurns are recorded behind whose each of their groups is.
type ownedTurns struct {
	*capture.Pipeline
	owned func([]ledger.Turn) []ledger.Turn
}

func (t ownedTurns) Add(ctx context.Context, turn ledger.Turn) error {
	return t.AddTurns(ctx, t.owned([]ledger.Turn{turn})) //nolint:wrapcheck // the pipeline's
}

func (t ownedTurns) AddAsync(turns []ledger.Turn) bool { return t.Pipeline.AddAsync(t.owned(turns)) }

// remembering is how the proxy remembers, and what with.
func (a *app) remembering(cfg *config.Config, id identity.Settings) proxy.Memory {
	var turns proxy.Turns = a.pipeline
	if cfg.Ingest.IncludeSystem {
		turns = ownedTurns{a.pipeline, a.service.Owned}
	}
	return proxy.Memory{
		Settings: proxy.Settings{
			Identity:     id,
			Rules:        rules(cfg),
			Recall:       cfg.Recall.Enabled,
			Ingest:       cfg.Ingest.Enabled,
			Note:         proxy.Note{Git: cfg.Ingest.GitMetadata, Tools: cfg.Ingest.ToolSummaries},
			Timeout:      cfg.Recall.Timeout,
			DropThinking: cfg.Memory.DropBoundThinking,
		},
		Services: proxy.Services{
			Planner:     a.planner,
			Sessions:    a.parts.state.Sessions,
			Turns:       turns,
			Owned:       a.service,
			Tenants:     a.parts.state.Tenants,
			Generations: a.parts.state.Generations,
			Responses:   a.parts.responses,
			Pending:     a.parts.pending,
		},
	}
}

// serviceSettings is what the service reads of a configuration.
func (a *app) serviceSettings(cfg *config.Config, namer graphiti.Namer) service.Settings {
	return service.Settings{Namer: namer, MaxFacts: cfg.Recall.MaxFacts, MaxChars: cfg.Ingest.MaxMessageChars, Timeout: cfg.Memory.Timeout, Directives: cfg.Promote.Directives, Remember: cfg.Promote.Remember}
}

// reload takes over what has changed in a new configuration, and returns the
// settings that have changed and are not taken over before a restart. With a
// mistake in it everything stays as it is: whatever can be refused is tried
// before anything is changed.
func (a *app) reload(cfg *config.Config) (waiting []string, err error) {
	if cfg.Identity.Mode != a.cfg.Identity.Mode || cfg.Identity.GroupIDs != a.cfg.Identity.GroupIDs || cfg.Identity.WorkspaceIDs != a.cfg.Identity.WorkspaceIDs || cfg.Identity.Owner != a.cfg.Identity.Owner {
		return nil, errors.New("identity.mode, identity.owner, identity.group_ids and identity.workspace_ids say whose memory is whose; restart the proxy to change them")
	}
	if a.admin != nil && cfg.Admin.Token == "" && !config.Loopback(a.cfg.Admin.Listen) {
		return nil, fmt.Errorf("admin.token: the admin side listens on %s until a restart, which is open to other machines; set a token", a.cfg.Admin.Listen)
	}
	list, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if err != nil {
		return nil, err
	}
	a.people.mu.Lock()
	defer a.people.mu.Unlock()
	var judged identity.Judged // by nothing, where there is no memory
	if a.parts != nil {
		if judged, err = a.judge(a.parts.state.Proofs, list); err != nil {
			return nil, err
		}
	}
	id, namer, err := a.identityOf(cfg)
	if err != nil {
		return nil, err
	}
	if err := a.proxy.SetRoutes(routes(cfg, a.planner != nil)); err != nil {
		return nil, err
	}
	if a.parts != nil {
		a.take(a.parts.state.Proofs, judged)
	} else {
		a.people.Set(list)
	}
	if a.admin != nil {
		a.admin.SetToken(cfg.Admin.Token)
	}
	if a.parts != nil {
		a.reloadMemory(cfg, id, namer)
	}
	a.live.Store(cfg)
	return a.waiting(), nil
}

// waiting are the settings that count after a restart. memory.consent can be
// withdrawn while the proxy runs, and given again.
func (a *app) waiting() []string {
	list := config.NeedRestart(a.cfg, a.live.Load())
	if a.parts != nil {
		list = slices.DeleteFunc(list, func(key string) bool { return key == "memory.consent" })
	}
	return list
}

// reloadMemory cannot fail.
func (a *app) reloadMemory(cfg *config.Config, id identity.Settings, namer graphiti.Namer) {
	a.planner.Set(a.groups(cfg, namer), a.planning(cfg))
	allowed := a.reloadConsent(cfg)
	if allowed {
		a.setMemory(a.remembering(cfg, id))
	} else {
		a.setMemory(proxy.Memory{Off: proxy.Off{Reason: inject.ReasonConsent}})
	}
	a.service.Set(a.serviceSettings(cfg, namer))
	a.pipeline.Set(capture.Bounds{
		MaxTurns: cfg.Ingest.MaxTurns, MaxBytes: cfg.Ingest.MaxBytes, MaxAge: cfg.Ingest.MaxAge, MaxBatch: cfg.Ingest.MaxBatch,
		MaxChars: cfg.Ingest.MaxMessageChars, Timeout: cfg.Memory.Timeout, StallAfter: cfg.Ingest.StallAfter, Paused: !allowed,
	})
}

// reloadConsent reports whether conversations may be sent to the memory that
// the proxy runs with: consent counts for the endpoint that it stands beside,
// and the running one may not be it any more.
func (a *app) reloadConsent(cfg *config.Config) bool {
	if a.store != nil {
		a.store.Pause(!cfg.Memory.Consent || cfg.Embedding.URL != a.cfg.Embedding.URL)
	}
	if !a.cfg.RemoteMemory() {
		return true
	}
	if cfg.Memory.Consent && !moved(a.cfg, cfg) {
		c, err := datadir.NoteConsent(a.cfg.DataDir, a.cfg.Memory.Endpoint)
		if err != nil {
			a.log.Warn("write consent to data_dir failed", "error", err)
		}
		a.consent.Store(c)
		return true
	}
	a.consent.Store(nil)
	if err := datadir.WithdrawConsent(a.cfg.DataDir); err != nil {
		a.log.Warn("remove consent from data_dir failed", "error", err)
	}
	a.log.Warn("memory is off: consent to send conversations to the memory's endpoint was withdrawn",
		"endpoint", a.cfg.Memory.Endpoint, "configured", cfg.Memory.Endpoint)
	return false
}

// moved reports whether a configuration that is read while the proxy runs
// names another memory than the one that it runs with, which consent was given
// for.
func moved(running, read *config.Config) bool {
	return running.RemoteMemory() && read.RemoteMemory() &&
		running.Memory.Endpoint != read.Memory.Endpoint
}
