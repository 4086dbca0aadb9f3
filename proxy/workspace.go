package proxy

import (
	"bytes"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// Rules say where there is no memory. In a pattern * stands for any text.
type Rules struct {
	Trusted, Ignored      []string // of workspaces, by key or directory; no trusted ones: all are
	SkipPaths, SkipModels []string // of requests
}

// refuses says why a workspace has no memory; empty when it has.
func (r *Rules) refuses(key, directory string) inject.Reason {
	if key == "" && directory == "" {
		return inject.ReasonNone
	}
	if matchAny(r.Ignored, key) || directory != "" && matchAny(r.Ignored, directory) {
		return inject.ReasonOptOut
	}
	if len(r.Trusted) > 0 && !matchAny(r.Trusted, key) && (directory == "" || !matchAny(r.Trusted, directory)) {
		return inject.ReasonUntrusted
	}
	return inject.ReasonNone
}

// skips reports whether a request is left alone by its path or model.
func (r *Rules) skips(uri, model []byte) bool {
	if len(r.SkipPaths)+len(r.SkipModels) == 0 {
		return false
	}
	path, _, _ := bytes.Cut(uri, []byte{'?'})
	return matchAny(r.SkipPaths, string(path)) || matchAny(r.SkipModels, string(model))
}

func matchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if match(p, s) {
			return true
		}
	}
	return false
}

// match reports whether s fits a pattern in which * stands for any text.
func match(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
}

// workspace is the project of one request.
type workspace struct {
	key       string // canonical; empty: none is known
	directory string // on this machine; empty where it is not
	why       string
	repo      Repo
}

// sessionPlaces remembers where the conversations of the moment take place:
// finding it out reads whole prompts, and not every request says it.
type sessionPlaces struct {
	mu       sync.Mutex // guards what follows
	new, old map[string]inject.Place
}

const maxSessionPlaces = 1 << 14 // in each of two generations

func (p *sessionPlaces) of(session string) (place inject.Place, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if place, ok = p.new[session]; !ok {
		place, ok = p.old[session]
	}
	return place, ok
}

func (p *sessionPlaces) keep(session string, place inject.Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.new == nil || len(p.new) >= maxSessionPlaces {
		p.old, p.new = p.new, make(map[string]inject.Place)
	}
	p.new[session] = place
}

// placeOf is where the client works: where a turn of the conversation said
// so, else what this request says. A title or a probe comes before the first
// turn, and says nothing or something else: it decides nothing for the others.
func (s *Server) placeOf(c *call, w *graphiti.Who) inject.Place {
	session := w.Tenant + "\x00" + w.User + "\x00" + w.Session
	codex := isCodex(c)
	known, ok := s.places.of(session)
	if ok && !codex { // which may change its directory
		return known
	}
	said := c.conv.Place(codex)
	if said == (inject.Place{}) {
		return known // of a conversation over a WebSocket only what is new is said
	}
	if c.conv.Kind == inject.KindTurn && !c.mem.subagent {
		s.places.keep(session, said)
	}
	return said
}

// workspaceOf finds the project of a request: what it claims, what Codex or
// Copilot tells of its repository, and on a person's own machine the
// repository of the directory that the client works in.
func (s *Server) workspaceOf(c *call, caller *Caller) (w workspace) {
	defer func() {
		if r := recover(); r != nil {
			tellBug(s.log, "finding the workspace", r)
		}
	}()
	if key := caller.Who.Workspace; key != "" {
		return workspace{key: key, why: caller.Why[claimWorkspace]}
	}
	codex := isCodex(c)
	place := s.placeOf(c, &caller.Who)
	if places := c.memory.Identity.Places; places != nil && place.Directory != "" {
		w.directory = place.Directory
		if w.repo = places.Find(place.Directory); w.repo.Root != "" {
			w.directory = w.repo.Root
		}
	}
	try := func(remote, why string) bool {
		key, ok := graphiti.WorkspaceKey(remote)
		if ok && strings.HasPrefix(key, "github_repo:") {
			w.key, w.why = key, why
		}
		return w.key != ""
	}
	switch {
	case codex && try(codexRemote(c, place.Directory), "x-codex-turn-metadata"):
	case w.repo.Remote != "" && try(w.repo.Remote, "the repository of the working directory"):
	case place.Repo != "" && try("https://github.com/"+place.Repo, "the repository that the client names"):
	case w.repo.Root != "":
		w.key, w.why = "path:"+w.repo.Root, "the working directory"
	}
	return w
}

func isCodex(c *call) bool {
	h := &c.ctx.Request.Header
	return len(h.Peek("X-Codex-Turn-Metadata")) > 0 || bytes.HasPrefix(h.UserAgent(), []byte("codex")) ||
		bytes.HasPrefix(h.Peek("Originator"), []byte("codex"))
}

// codexWorkspaces is what Codex tells of the repositories it works in (since
// 0.98): an object by directory.
func codexWorkspaces(c *call) map[string]gjson.Result {
	told := c.ctx.Request.Header.Peek("X-Codex-Turn-Metadata")
	if len(told) == 0 {
		told = []byte(gjson.GetBytes(c.conv.Field(inject.FieldClientMetadata), "x-codex-turn-metadata").String())
	}
	return gjson.GetBytes(told, "workspaces").Map()
}

// codexRemote is the address of the repository that holds the directory, or
// of the only one there is.
func codexRemote(c *call, directory string) string {
	_, w := codexWorkspace(c, directory)
	return w.Get("associated_remote_urls.origin").String()
}

func codexWorkspace(c *call, directory string) (path string, w gjson.Result) {
	all := codexWorkspaces(c)
	for p, one := range all {
		inside := p == directory || strings.HasPrefix(directory, strings.TrimSuffix(p, "/")+"/")
		if len(all) == 1 || inside && len(p) >= len(path) {
			path, w = p, one
		}
	}
	return path, w
}
