package proxy

import (
	"cmp"
	"log/slog"
	"sync"
)

// maxUntrusted limits the untrusted projects in the log, because a client can invent
// directories.
const maxUntrusted = 100

// untrusted explains once for each project why it has no memory.
type untrusted struct {
	mu        sync.Mutex // protects explained
	explained map[string]bool
}

// explain logs that a project is not in workspace.trusted, unless the log says so already.
func (u *untrusted) explain(log *slog.Logger, w *project) {
	name := cmp.Or(w.key, w.Directory)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.explained[name] || len(u.explained) >= maxUntrusted {
		return
	}
	if u.explained == nil {
		u.explained = make(map[string]bool)
	}
	u.explained[name] = true
	if name == "" {
		log.Info("requests without a project have no memory, because workspace.trusted is set",
			"to_do", "name a trusted project in the header X-Graphiti-Workspace, or empty workspace.trusted")
		return
	}
	log.Info("project has no memory, because workspace.trusted does not list it", "project", name,
		"to_do", "add the project to workspace.trusted")
}
