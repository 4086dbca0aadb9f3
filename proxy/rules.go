package proxy

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Rules exclude workspaces and requests from memory. In a pattern, * matches any text.
type Rules struct {
	Trusted, Ignored      []string // workspaces, by key or directory; if Trusted is empty, all are trusted
	SkipPaths, SkipModels []string // requests

	RemotePaths bool // the path of a directory that is not on this machine names a project
	Optional    bool // a client that works on files, but names no directory, has the person's memory
}

// refuses returns the reason for a workspace without memory; empty if it has memory. The
// rules apply to the directory that the client names, to its path without symbolic links,
// and to its repository.
func (r *Rules) refuses(w *project) inject.Reason {
	names := []string{w.key, w.Directory, w.Repo.Dir, w.Repo.Root, w.Repo.Main}
	switch {
	case w.Repo.Ignore, workspace.MatchAny(r.Ignored, names...), workspace.MatchAny(r.Ignored, w.others...),
		len(r.Ignored) > 0 && workspace.MatchAny(r.Ignored, w.Repo.Keys()...):
		return inject.ReasonOptOut
	case w.late: // await completes it, and refuses is called again
		return inject.ReasonNone
	case w.unknown:
		return inject.ReasonPlace
	case len(r.Trusted) > 0 && !workspace.MatchAny(r.Trusted, names...):
		return inject.ReasonUntrusted
	}
	return inject.ReasonNone
}

// Remembers reports whether the rules allow memory in a repository of this machine; key
// is the repository's.
func (r *Rules) Remembers(repo workspace.Repo, key string) bool {
	w := project{Place: identity.Place{Directory: repo.Dir, Repo: repo}, key: key}
	return r.refuses(&w) == inject.ReasonNone
}

// skipsModel reports whether a request with this model has no memory.
func (r *Rules) skipsModel(model []byte) bool {
	return len(r.SkipModels) > 0 && workspace.Match(r.SkipModels, string(model))
}

// skipsPath reports whether a request with this path has no memory.
func (r *Rules) skipsPath(uri []byte) bool {
	if len(r.SkipPaths) == 0 {
		return false
	}
	path, _, _ := bytes.Cut(uri, []byte{'?'})
	return workspace.Match(r.SkipPaths, string(path)) || workspace.Match(r.SkipPaths, string(wire.PlainPath(uri)))
}
