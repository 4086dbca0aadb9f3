package main

import (
	"context"
	"fmt"
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

// identity returns how callers are identified, and reads the registered people.
func (a *app) identity() (identity.Settings, graphiti.Namer, error) {
	people, err := identity.LoadPeople(a.cfg.Identity.UsersFile)
	if err != nil {
		return identity.Settings{}, graphiti.Namer{}, err
	}
	a.people.Set(people)
	return a.identityOf(a.cfg)
}

func (a *app) identityOf(cfg *config.Config) (identity.Settings, graphiti.Namer, error) {
	id := identity.Settings{Multi: cfg.Identity.Mode == "multi", BodyUsers: cfg.Identity.BodyUsers, OpenWebUI: cfg.Identity.OpenWebUI, People: &a.people.Registry}
	namer := graphiti.Namer{Raw: cfg.Identity.GroupIDs == "raw", Named: cfg.Identity.WorkspaceIDs == "raw"}
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
	if id.Trusted, err = identity.NewFingerprints("identity.trusted_keys", cfg.Identity.TrustedKeys); err != nil {
		return id, namer, err
	}
	owner := cfg.Identity.Owner
	if owner == "" && !id.Multi {
		if owner, err = a.ownerOf(cfg.DataDir); err != nil {
			return id, namer, err
		}
	}
	if !id.Multi {
		if a.projects == nil {
			a.projects = workspace.OpenProjects(filepath.Join(cfg.DataDir, projectsFile), a.log)
		}
		a.projects.SetClones(cfg.Workspace.Clones)
		id.Places = workspace.NewPlaces()
		id.Places.Projects = a.projects
		id.Places.Wait = cfg.Recall.Timeout / 8 // a share of what memory may cost a request
	}
	if owner != "" {
		key, ok := graphiti.UserKey(owner)
		if !ok {
			return id, namer, cli.ErrOwner
		}
		id.Owner = key
	}
	return id, namer, nil
}

// ownerOf returns the person of a data directory. If the file owner was lost, the
// groups in spool.db say who that was.
func (a *app) ownerOf(dir string) (string, error) {
	if a.owner != "" { // a reload: the files are in use, and the owner does not change
		return a.owner, nil
	}
	owner, recovered, err := datadir.Owner(dir, func() ([]string, error) { return service.Owners(context.Background(), dir, a.cfg.RemoteMemory()) })
	if recovered {
		a.log.Warn("the file owner of data_dir was lost and is there again: the record of turns says whose memory this is", "data_dir", dir)
	}
	return owner, err
}

// registered returns the name of a registered person.
func (a *app) registered(key string) (name string, ok bool) {
	if p := a.people.Registered(key); p != nil {
		return p.Name, true
	}
	return "", false
}
