package proxy

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// Rules say where there is no memory. In a pattern * stands for any text.
type Rules struct {
	Trusted, Ignored      []string // of workspaces, by key or directory; no trusted ones: all are
	SkipPaths, SkipModels []string // of requests
}

// refuses says why a workspace has no memory; empty when it has. A rule counts
// for the directory that the client names, for what that is without symbolic
// links, and for the repository that it belongs to.
func (r *Rules) refuses(w *project) inject.Reason {
	names := []string{w.key, w.directory, w.repo.Dir, w.repo.Root}
	switch {
	case workspace.MatchAny(r.Ignored, names...), workspace.MatchAny(r.Ignored, w.others...):
		return inject.ReasonOptOut
	case w.unknown:
		return inject.ReasonUntrusted
	case len(r.Trusted) > 0 && w.key+w.directory != "" && !workspace.MatchAny(r.Trusted, names...):
		return inject.ReasonUntrusted
	}
	return inject.ReasonNone
}

// skips reports whether a request is left alone by its path or model.
func (r *Rules) skips(uri, model []byte) bool {
	if len(r.SkipPaths)+len(r.SkipModels) == 0 {
		return false
	}
	return r.skipsPath(uri) || workspace.Match(r.SkipModels, string(model))
}

// skipsPath reports whether a request is left alone by its path.
func (r *Rules) skipsPath(uri []byte) bool {
	if len(r.SkipPaths) == 0 {
		return false
	}
	path, _, _ := bytes.Cut(uri, []byte{'?'})
	return workspace.Match(r.SkipPaths, string(path))
}

// project is the workspace of one request.
type project struct {
	key       string // canonical; empty: none is known
	why       string
	others    []string       // what else it could be called; only what is ignored asks
	directory string         // that the client works in, as it names it
	named     string         // owner/name of a repository on GitHub that it names
	repo      workspace.Repo // which that belongs to, on this machine
	unknown   bool           // it was not found out whether memory is wanted there
}

// workspaceOf finds the project of a request, by the table of its sources, of
// whom the caller was told by (*Identity).who.
func (s *Server) workspaceOf(c *call, caller *Caller) (w project) {
	defer func() {
		if r := recover(); r != nil {
			tellBug(s.log, "finding the workspace", r)
			w = project{unknown: true}
		}
	}()
	m := c.memory
	w.directory, w.named = c.mem.at.place.Directory, c.mem.at.place.Repo
	if m.Identity.Places != nil {
		w.unknown = !c.mem.chained && c.summaryOfWhere() || c.mem.at.place.Unclear
		if w.directory != "" {
			var ok bool
			if w.repo, ok = m.Identity.Places.Find(w.directory); !ok {
				w.unknown = true
			}
		}
	}
	if c.mem.at.place.Unclear && len(m.Rules.Ignored)+len(m.Rules.Trusted) > 0 {
		w.unknown = true // the rules may be about one of the places
	}
	c.says.at = &w
	w.key, w.why = c.says.claim(claimWorkspace)
	if len(m.Rules.Ignored) > 0 {
		w.others = append(c.says.all(claimWorkspace), workspace.Key(w.repo.Claimed))
	}
	return w
}

// summaryOfWhere reports whether nothing tells in which project a conversation
// was that is to be summarised: a summary is of a whole conversation, and some
// clients ask for it with another prompt, which does not say so.
func (c *call) summaryOfWhere() bool {
	return c.conv.Kind == inject.KindSummary && c.memory.Identity.Places != nil && !c.mem.at.says && !c.mem.at.seen && c.says.calls() == ""
}

// calls is the workspace that the request names in a header.
func (cl *claimant) calls() string {
	key, _ := graphiti.WorkspaceKey(cl.value(&workspaceSources[0]))
	return key
}

// placeRemote is where the repository that the client works in came from.
func (cl *claimant) placeRemote() string { return workspace.Key(cl.at.repo.Remote) }

// placeRepo is the repository that the client names.
func (cl *claimant) placeRepo() string {
	if cl.at.named == "" {
		return ""
	}
	return workspace.Key("https://github.com/" + cl.at.named)
}

// placeRoot is the directory itself.
func (cl *claimant) placeRoot() string {
	if cl.at.repo.Root == "" {
		return ""
	}
	return graphiti.PathPrefix + cl.at.repo.Root
}

// codexRemote is the address of the repository that Codex works in.
func (cl *claimant) codexRemote() string {
	_, w := cl.codexWorkspace(cl.at.directory)
	return workspace.Key(w.Get("associated_remote_urls.origin").String())
}

// codexWorkspace is what Codex tells (since 0.98) of the repository that holds
// a directory, or of the only one there is, and that one's path.
func (cl *claimant) codexWorkspace(directory string) (path string, w gjson.Result) {
	told := cl.h.Peek("X-Codex-Turn-Metadata")
	if len(told) == 0 && cl.conv != nil {
		told = []byte(gjson.GetBytes(cl.conv.Field(inject.FieldClientMetadata), "x-codex-turn-metadata").String())
	}
	all := gjson.GetBytes(told, "workspaces").Map()
	for p, one := range all {
		if len(all) == 1 || workspace.Within(p, directory) && len(p) >= len(path) {
			path, w = p, one
		}
	}
	return path, w
}
