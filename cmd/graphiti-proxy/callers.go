package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

const projectsFile = "projects.json" // in data_dir

// callers says who callers are. It stays over a reload.
type callers struct {
	people   *identity.Registry
	owner    string              // the key of the person of single mode
	projects *workspace.Projects // of single mode: in multi mode directories say nothing
}

// newCallers returns how callers are identified; owner is as ownerOf returns it.
func newCallers(cfg *config.Config, owner string, people *identity.Registry, log *slog.Logger) callers {
	return callers{people: people, owner: owner, projects: workspace.OpenProjects(filepath.Join(cfg.DataDir, projectsFile), log)}
}

// settings are how callers are identified, and how their groups are named.
func (c *callers) settings(cfg *config.Config) (identity.Settings, graphiti.Namer, error) {
	id, namer, err := identitySettings(cfg)
	if err != nil {
		return id, namer, err
	}
	id.People, id.Owner = c.people, c.owner
	if !id.Multi {
		c.projects.SetClones(cfg.Workspace.Clones)
		id.Places = workspace.NewPlaces()
		id.Places.Projects = c.projects
		id.Places.Wait = cfg.Recall.Timeout / 8 // a share of what memory may cost a request
	}
	return id, namer, nil
}

// identitySettings returns the settings that come from the configuration only.
func identitySettings(cfg *config.Config) (id identity.Settings, namer graphiti.Namer, err error) {
	id = identity.Settings{Multi: cfg.Identity.Mode == "multi", BodyUsers: cfg.Identity.BodyUsers, OpenWebUI: cfg.Identity.OpenWebUI}
	namer.Raw, namer.Named = cfg.Identity.GroupIDs == "raw", cfg.Identity.WorkspaceIDs == "raw"
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // {login} is not known
	}
	namer.Also = graphiti.Also{Names: cfg.Recall.AlsoGroups, Home: home, Proven: id.Multi}
	if namer.Recall, err = graphiti.ParseScopes(cfg.Recall.Scopes); err != nil {
		return id, namer, fmt.Errorf("recall.scopes: %w", err)
	}
	if namer.Ingest, err = graphiti.ParseScopes(cfg.Ingest.Scopes); err != nil {
		return id, namer, fmt.Errorf("ingest.scopes: %w", err)
	}
	id.Trusted, err = identity.NewFingerprints("identity.trusted_keys", cfg.Identity.TrustedKeys)
	return id, namer, err
}

// ownerOf returns the key of the person of single mode: whom the configuration
// names, else the data directory. If its file owner was lost, the groups in the
// record of turns say who that was. In multi mode it may be empty.
func ownerOf(cfg *config.Config, log *slog.Logger) (string, error) {
	owner := cfg.Identity.Owner
	if owner == "" {
		if cfg.Identity.Mode == "multi" {
			return "", nil
		}
		dir, recovered, err := cfg.DataDir, false, error(nil)
		owner, recovered, err = datadir.Owner(dir, func() ([]string, error) { return service.Owners(context.Background(), dir, cfg.RemoteMemory()) })
		if recovered {
			log.Warn("the file owner of data_dir was lost and is there again: the record of turns says whose memory this is", "data_dir", dir)
		}
		if err != nil {
			return "", err
		}
	}
	key, ok := graphiti.UserKey(owner)
	if !ok {
		return "", cli.ErrOwner
	}
	return key, nil
}
