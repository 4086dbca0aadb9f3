package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// reload applies the changes of a new configuration, and returns the changed settings that
// wait for a restart. A mistake in it leaves everything unchanged: all steps that can fail
// come before the first change.
func (a *app) reload(cfg *config.Config) (waiting []string, err error) {
	if cfg.Identity.Mode != a.cfg.Identity.Mode || cfg.Identity.GroupIDs != a.cfg.Identity.GroupIDs || cfg.Identity.WorkspaceIDs != a.cfg.Identity.WorkspaceIDs || cfg.Identity.Owner != a.cfg.Identity.Owner {
		return nil, errors.New("identity.mode, identity.owner, identity.group_ids and identity.workspace_ids say whose memory is whose; restart the proxy to change them")
	}
	if listen := a.cfg.Admin.Listen; listen != "off" && cfg.Admin.Token == "" && !config.Loopback(listen) {
		return nil, fmt.Errorf("admin.token: the admin side listens on %s until a restart, which is open to other machines; set a token", listen)
	}
	if err := a.memory.reload(cfg, func() error { return a.proxy.SetRoutes(a.routes(cfg)) }); err != nil {
		return nil, err
	}
	a.admin.SetToken(cfg.Admin.Token)
	a.live.Store(cfg)
	return a.status(context.Background(), false).Waiting, nil
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
	r.backend.Pause(!cfg.Memory.Consent || cfg.Embedding.URL != r.cfg.Embedding.URL)
	r.facts.set(cfg)
	allowed := r.consent.reload(cfg)
	if allowed {
		r.given.set(r.proxyMemory(cfg, id))
	} else {
		r.given.set(proxy.Memory{Off: proxy.Off{Reason: inject.ReasonConsent}})
	}
	r.service.Set(serviceSettings(cfg, namer))
	r.pipeline.Set(ingestBounds(cfg), !allowed)
	return nil
}
