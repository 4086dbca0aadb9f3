package identity

import (
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Place is where the client of a request works.
type Place struct {
	Directory string         // as the client names it
	Named     string         // owner/name of a repository on GitHub that it names
	Repo      workspace.Repo // which the directory belongs to, on this machine
}

// Workspace is the workspace of a client that works in a place, and which
// source says so.
func (cl *Claims) Workspace(at Place) (key, why string) {
	cl.at, cl.located = at, true
	return cl.claim(Workspace)
}

// Workspaces are the keys of every workspace that the request names, counted or
// not, for a client that works in a place.
func (cl *Claims) Workspaces(at Place) []string {
	cl.at, cl.located = at, true
	return append(cl.all(Workspace), workspace.Key(at.Repo.Claimed))
}

// NamedWorkspace is the workspace that the request names in a header.
func (cl *Claims) NamedWorkspace() string {
	key, _ := graphiti.WorkspaceKey(cl.value(&workspaceSources[0]))
	return key
}

// placeRemote is where the repository that the client works in came from.
func (cl *Claims) placeRemote() string { return workspace.Key(cl.at.Repo.Remote) }

// placeRepo is the repository that the client names.
func (cl *Claims) placeRepo() string {
	if cl.at.Named == "" {
		return ""
	}
	return workspace.Key("https://github.com/" + cl.at.Named)
}

// placeRoot is the directory itself.
func (cl *Claims) placeRoot() string {
	if cl.at.Repo.Root == "" {
		return ""
	}
	return graphiti.PathPrefix + cl.at.Repo.Root
}

// codexRemote is the address of the repository that Codex works in.
func (cl *Claims) codexRemote() string {
	return workspace.Key(cl.CodexRepo(cl.at.Directory).Origin)
}

// CodexRepo is what Codex says of a repository.
type CodexRepo struct {
	Path   string
	Origin string // address of its remote
	Commit string
	Dirty  bool
}

// CodexRepo is what Codex says (since 0.98) of the repository that holds a
// directory, or of the only one there is.
func (cl *Claims) CodexRepo(directory string) (repo CodexRepo) {
	metadata := cl.h.Peek("X-Codex-Turn-Metadata")
	if len(metadata) == 0 && cl.conv != nil {
		metadata = []byte(gjson.GetBytes(cl.conv.Field(dialect.FieldClientMetadata), "x-codex-turn-metadata").String())
	}
	all := gjson.GetBytes(metadata, "workspaces").Map()
	for path, one := range all {
		if len(all) == 1 || workspace.Within(path, directory) && len(path) >= len(repo.Path) {
			repo = CodexRepo{
				Path:   path,
				Origin: one.Get("associated_remote_urls.origin").String(),
				Commit: one.Get("latest_git_commit_hash").String(),
				Dirty:  one.Get("has_changes").Bool(),
			}
		}
	}
	return repo
}
