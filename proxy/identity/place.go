package identity

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Place is the working directory or repository of a client.
type Place struct {
	Directory string         // as the client states it
	Named     string         // the GitHub repository that the client states, as owner/name
	Repo      workspace.Repo // the directory's repository, if it is on this machine
	ByPath    bool           // a path outside this machine counts as a project
}

// Workspace returns the project of a place and the source of its key.
func (cl *Claims) Workspace(at Place) (key, why string) {
	cl.at, cl.located = at, true
	return cl.claim(Workspace)
}

// Workspaces returns the project keys of all sources, including overridden ones.
func (cl *Claims) Workspaces(at Place) []string {
	cl.at, cl.located = at, true
	return cl.all(Workspace)
}

// NamedWorkspace returns the workspace in the header X-Graphiti-Workspace.
func (cl *Claims) NamedWorkspace() string {
	key, _ := graphiti.WorkspaceKey(cl.value(&workspaceSources[0]))
	return key
}

// placeRemote returns the key of the repository's origin.
func (cl *Claims) placeRemote() string { return workspace.Key(cl.at.Repo.Remote) }

// placeRepo returns the key of the GitHub repository that the client states.
func (cl *Claims) placeRepo() string {
	if cl.at.Named == "" {
		return ""
	}
	return workspace.Key("https://github.com/" + cl.at.Named)
}

// placeRoot returns the key of the repository's main checkout, or of the directory
// itself.
func (cl *Claims) placeRoot() string {
	if cl.at.Repo.Main == "" {
		return ""
	}
	return graphiti.PathPrefix + cl.at.Repo.Main
}

// placePath returns the key of the path itself if paths count as projects. It lowers the
// case of Windows paths, because Windows ignores it.
func (cl *Claims) placePath() string {
	path := cl.at.Directory
	if !cl.at.ByPath || path == "" {
		return ""
	}
	if path[0] != '/' {
		path = strings.ToLower(strings.ReplaceAll(path, `\`, "/"))
	}
	return graphiti.PathPrefix + path
}

// codexRemote returns the key of the repository in Codex's metadata.
func (cl *Claims) codexRemote() string {
	return workspace.Key(cl.CodexRepo(cl.at.Directory).Origin)
}

// CodexRepo is a repository as Codex describes it.
type CodexRepo struct {
	Path   string
	Origin string // URL of its remote
	Commit string
	Dirty  bool
}

// CodexRepo returns the repository that contains a directory, as stated by Codex (since
// 0.98). If Codex lists a single repository, CodexRepo returns it for any directory.
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
