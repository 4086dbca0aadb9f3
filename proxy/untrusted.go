package proxy

import (
	"cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// explainUntrusted logs that a project is not in workspace.trusted, unless the log says so already.
func (s *decider) explainUntrusted(w *project) {
	name, isLogged := cmp.Or(w.key, w.Directory), false
	s.memo.Update(keyOf(dialect.Fingerprint{}.Link(dialect.RoleOther, []byte(name)), untrustedName), func(was any) (any, int) {
		isLogged = was != nil
		return true, 0
	})
	switch {
	case isLogged:
	case name == "":
		s.log.Info("requests without a project have no memory, because workspace.trusted is set",
			"to_do", "name a trusted project in the header X-Graphiti-Workspace, or empty workspace.trusted")
	default:
		s.log.Info("project has no memory, because workspace.trusted does not list it", "project", name,
			"to_do", "add the project to workspace.trusted")
	}
}
