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

// callers identifies callers. A reload does not replace it.
type callers struct {
	people   *identity.Registry
	owner    string              // key of the person in single mode
	projects *workspace.Projects // for single mode: directories have no meaning in multi mode
}

// newCallers returns callers; owner is the result of ownerOf.
func newCallers(cfg *config.Config, owner string, people *identity.Registry, log *slog.Logger) callers {
	return callers{people: people, owner: owner, projects: workspace.OpenProjects(filepath.Join(cfg.DataDir, projectsFile), log)}
}

// settings returns the settings that identify callers and name their groups.
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
		id.Places.Wait = cfg.Recall.Timeout / 8 // a share of the time for memory in a request
	}
	return id, namer, nil
}

// identitySettings returns the settings from the configuration alone.
func identitySettings(cfg *config.Config) (id identity.Settings, namer graphiti.Namer, err error) {
	id = identity.Settings{Multi: cfg.Identity.Mode == "multi", BodyUsers: cfg.Identity.BodyUsers, OpenWebUI: cfg.Identity.OpenWebUI, Trusted: identity.NewFingerprints(cfg.Identity.TrustedKeys)}
	namer.Raw, namer.Named = cfg.Identity.GroupIDs == "raw", cfg.Identity.WorkspaceIDs == "raw"
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // {login} is unknown
	}
	namer.Also = graphiti.Also{Names: cfg.Recall.AlsoGroups, Home: home, Proven: id.Multi}
	if namer.Recall, err = graphiti.ParseScopes(cfg.Recall.Scopes); err != nil {
		return id, namer, fmt.Errorf("recall.scopes: %w", err)
	}
	if namer.Ingest, err = graphiti.ParseScopes(cfg.Ingest.Scopes); err != nil {
		return id, namer, fmt.Errorf("ingest.scopes: %w", err)
	}
	return id, namer, nil
}

// ownerOf returns the key of the person in single mode: from the configuration, or else
// from the data directory. If its file owner was lost, it finds the owner in the groups of
// the record of turns. In multi mode the key may be empty.
func ownerOf(cfg *config.Config, log *slog.Logger) (string, error) {
	owner := cfg.Identity.Owner
	if owner == "" {
		if cfg.Identity.Mode == "multi" {
			return "", nil
		}
		dir, recovered, err := cfg.DataDir, false, error(nil)
		owner, recovered, err = datadir.Owner(dir, func() ([]string, error) { return service.Owners(context.Background(), dir) })
		if recovered {
			log.Warn("restored the lost file owner of data_dir from the record of turns", "data_dir", dir)
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
