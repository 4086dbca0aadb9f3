package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/standing"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/connect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// settings are the configuration of an app.
type settings struct {
	cfg  *config.Config                // configuration at the start
	live atomic.Pointer[config.Config] // latest configuration
}

func newSettings(cfg *config.Config) *settings {
	s := &settings{cfg: cfg}
	s.live.Store(cfg)
	return s
}

// moved reports whether a new configuration names another memory than the memory in use,
// for which consent was given.
func (s *settings) moved(read *config.Config) bool {
	return s.cfg.RemoteMemory() && read.RemoteMemory() && s.cfg.Memory.Endpoint != read.Memory.Endpoint
}

// The functions below return the options of each package.

func telemetryOptions(cfg *config.Config, log *slog.Logger) telemetry.Options {
	return telemetry.Options{
		Endpoint: cfg.OTel.Endpoint, Traces: cfg.OTel.Traces, Metrics: cfg.OTel.Metrics, Sample: cfg.OTel.Sample,
		Version: telemetry.Version(), Instance: telemetry.ProcessName(), Log: log,
	}
}

func adminOptions(cfg *config.Config, log *slog.Logger, h *service.Host, metrics http.Handler, secured *tls.Config) admin.Options {
	return admin.Options{
		TLS: secured, Listen: cfg.Admin.Listen, Token: cfg.Admin.Token, Proxies: cfg.TrustedProxies(func(error) {}), // checked when they were read
		Host: h, Metrics: metrics, Log: log, Audit: telemetry.Always(log), Version: telemetry.Version(),
	}
}

// projectFinder returns a function that finds the project of a directory by the rules for requests,
// or nil in identity.mode multi. The function returns an error if the project has no memory.
func projectFinder(now func() *config.Config) func(dir string) (string, error) {
	if now().Identity.Mode == "multi" {
		return nil
	}
	return func(dir string) (string, error) {
		cfg := now()
		repo, key, _ := workspace.Around(dir, filepath.Join(cfg.DataDir, projectsFile), cfg.Workspace.Clones)
		r := rules(cfg)
		switch {
		case repo.Dir == "":
			return "", fmt.Errorf("the directory %q is not on the proxy's machine, so its project is unknown", dir)
		case !r.Remembers(repo, key):
			return "", fmt.Errorf("the project of %q is excluded from memory", dir)
		}
		return key, nil
	}
}

func (a *app) routes(cfg *config.Config) proxy.Routes {
	return proxy.Routes{
		Upstreams: served(cfg),
		Logged:    cfg.Log.Requests,
		Hashed:    cfg.Observe.People == "hash",
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
			Keys:             identity.NewFingerprints(cfg.Client.Keys),
			Rates:            proxy.Rates{Requests: cfg.Limits.Requests, Tokens: cfg.Limits.Tokens},
			UpstreamConnect:  cfg.Upstream.ConnectTimeout,
			UpstreamResponse: cfg.Upstream.ResponseTimeout,
			UpstreamIdle:     cfg.Upstream.IdleTimeout,
		},
		WebSocket: webSocket(cfg.WebSocket, a.host().Memory != nil),
	}
}

// served returns the upstreams of requests: the configured ones, and the upstream of Codex
// with a ChatGPT login.
func served(cfg *config.Config) map[string]string {
	all := map[string]string{connect.ChatGPT: "https://chatgpt.com/backend-api/codex"}
	maps.Copy(all, cfg.Upstreams())
	return all
}

// inspectTotal returns the bytes that may be inspected at the same time.
func inspectTotal(cfg *config.Config) int {
	if cfg.Limits.InspectTotal > 0 {
		return cfg.Limits.InspectTotal
	}
	return budget.Default()
}

// webSocket converts the setting. Without memory there is no reason to refuse.
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
		RemotePaths: cfg.Workspace.RemotePaths, Optional: cfg.Workspace.Optional,
	}
}

// planning returns the settings for decisions about blocks in requests.
func (s *settings) planning(cfg *config.Config) inject.RecallSettings {
	return inject.RecallSettings{
		Timeout:    cfg.Recall.Timeout,
		MaxFacts:   cfg.Recall.MaxFacts,
		Asked:      2 * cfg.Recall.MaxFacts,
		MaxChars:   cfg.Recall.MaxChars,
		StaleAfter: cfg.Recall.StaleAfter,
		MinScore:   cfg.Recall.MinScore,
		Share:      cfg.Recall.ContextShare,
		Window:     cfg.Recall.ContextWindow,
		CardChars:  cfg.Recall.CardChars,
		Resume:     cfg.Recall.ResumeWithin,
		Compaction: cfg.Recall.Compaction,
		Unseen:     cfg.Ingest.BackfillTurns,
	}
}

func serviceSettings(cfg *config.Config, namer graphiti.Namer) service.Settings {
	return service.Settings{Namer: namer, MaxFacts: cfg.Recall.MaxFacts, MaxChars: cfg.Ingest.MaxMessageChars, Timeout: cfg.Memory.Timeout, Prices: cfg.Cost.Prices, Distils: cfg.Distil.Model}
}

func standingConfig(cfg *config.Config, namer graphiti.Namer) standing.Config {
	return standing.Config{Namer: namer, Directives: cfg.Promote.Directives, Remember: cfg.Promote.Remember}
}

// retention returns the ages at which messages, facts and the work of agents are deleted.
func retention(cfg *config.Config) ledger.Retention {
	ages := cfg.Ages()
	kind := func(name string) time.Duration {
		defer delete(ages, name)
		return ages[name]
	}
	return ledger.Retention{Age: cmp.Or(kind("messages"), cfg.Memory.Retain), Facts: kind("facts"), Work: kind("work"), Of: ages}
}

// ingestBounds returns the bounds of the record of turns that a reload changes.
func (r *remembering) ingestBounds(cfg *config.Config) capture.Bounds {
	b := capture.Bounds{
		MaxChars: cfg.Ingest.MaxMessageChars, Episodes: capture.Episodes(cfg.Ingest.Episodes),
		Timeout: cfg.Memory.Timeout, StallAfter: cfg.Ingest.StallAfter, Retain: retention(cfg),
		Quotas: capture.Quotas{Person: quota(cfg.Quota.Person), Tenant: quota(cfg.Quota.Tenant), All: quota(cfg.Quota.All), Disk: config.Limit(cfg.Quota.All, "disk")},
	}
	if cfg.Ingest.Ownership {
		b.Named = func(owner string) (string, bool) { return r.service.Named(owner) }
	}
	return b
}

func quota(of map[string]string) graphiti.Extent {
	return graphiti.Extent{Messages: config.Limit(of, "messages"), Bytes: config.Limit(of, "bytes")}
}
