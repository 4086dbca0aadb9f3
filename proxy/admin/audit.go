package admin

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// audit tells who looked at, or changed, what is remembered: what was done, of
// whom, from where, in which groups, and whether it was. No text is in it, and
// log.level does not leave it out.
func (s *Server) audit(r *http.Request, what, who string, groups []string, err error, more ...any) {
	if groups == nil {
		groups = []string{}
	}
	s.o.Audit.Info("audit", append([]any{ //nolint:sloglint // pairs that are the same in all
		slog.String("what", what), slog.String("who", who), slog.String("peer", peerOf(r)), slog.Any("groups", groups), slog.Bool("done", err == nil),
	}, more...)...)
}

// auditName says whose memory a call was about.
func auditName(s service.Selector) string {
	var parts []string
	for _, p := range []struct{ what, value string }{
		{"user", s.User}, {"agent", s.Agent}, {"workspace", s.Workspace}, {"session", s.Session}, {"group", s.Group}, {"credential", s.Credential},
	} {
		if p.value != "" {
			parts = append(parts, p.what+"="+p.value)
		}
	}
	if parts == nil {
		return "the owner"
	}
	if s.Own {
		parts = append(parts, "and the person's own")
	}
	return strings.Join(parts, " ")
}
