package main

import (
	"context"
	"net/http"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/capture/distil"
	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// facts distils facts in a proxy. The zero value is off.
type facts struct {
	*distil.Distiller
	url       string // has consent
	providers distil.Providers
}

// start starts to distil, if the configuration has a model and consent.
func (f *facts) start(r *remembering) {
	c := &r.cfg.Distil
	switch {
	case c.URL == "" && !c.Upstream || r.backend.Facts == nil:
		return
	case !r.cfg.DistilConsented():
		r.log.Warn("facts are off: memory.consent does not cover distil.url, so no conversation is sent there", "url", c.URL)
		return
	}
	var model distil.Model = distil.NewEndpoint(c.URL, c.Model, func() string { return r.live.Load().Distil.APIKey })
	endpoint := c.URL
	if c.Upstream {
		model, endpoint = f.providers.Model(c.Model), "the caller's provider"
	}
	f.url = c.URL
	var store distil.Batches = r.backend.Facts
	if r.shared != nil {
		l := &leased{Batches: store}
		ctx, cancel := context.WithCancel(context.Background())
		var taking sync.WaitGroup
		taking.Go(func() { l.lease(ctx, r.shared) }) // ends with cancel
		r.stop.OnClose("lease", closes(func() { cancel(); taking.Wait() }))
		store = l
	}
	f.Distiller = distil.Start(store, r.state.Figures, model, endpoint, f.settings(r.cfg), r.log)
	r.backend.Facts.Distil(f.Wake)
	r.stop.OnClose("facts", closes(func() {
		f.Close()
		http.DefaultClient.CloseIdleConnections()
	}))
}

// settings returns the settings of a configuration. Without consent, the distiller sends no text.
func (f *facts) settings(cfg *config.Config) distil.Pace {
	return distil.Pace{After: cfg.Distil.After, DailyTokens: cfg.Distil.DailyTokens,
		TenantTokens: int(config.Limit(cfg.Quota.Tenant, "tokens")), PersonTokens: int(config.Limit(cfg.Quota.Person, "tokens")),
		Paused: cfg.Distil.Pause || !cfg.DistilConsented() || cfg.Distil.URL != f.url}
}

func (f *facts) set(cfg *config.Config) {
	if f.Distiller != nil {
		f.Set(f.settings(cfg))
	}
}

// status returns nil if facts are off.
func (f *facts) status(ctx context.Context) *distil.Report {
	if f.Distiller == nil {
		return nil
	}
	s := f.Status(ctx)
	return &s
}
