package admin

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/service"
)

// shown, found and promoted are the answers to show, search and promote.
type (
	shown struct {
		Messages []service.Record `json:"messages"`
		Others   []ledger.Owned   `json:"others,omitempty"` // groups of theirs that were not looked into
	}
	found struct {
		Facts  []service.Found `json:"facts"`
		Others []ledger.Owned  `json:"others,omitempty"`
	}
	promoted struct {
		Groups []string `json:"groups"`
	}
)

type showRequest struct {
	service.Selector
	Last int `json:"last,omitempty"`
}

type searchRequest struct {
	service.Selector
	Query string `json:"query"`
	All   bool   `json:"all,omitempty"`
}

type promoteRequest struct {
	service.Selector
	service.Promotion
}

type importRequest struct {
	service.Selector
	Lines []service.Line `json:"lines"`
}

const (
	maxShown = 10_000
	maxLines = 1000
)

func (s *Server) show(w http.ResponseWriter, r *http.Request, m *service.Service) {
	in := showRequest{Last: 50}
	if err := readJSON(w, r, &in); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if in.Last < 1 || in.Last > maxShown {
		writeError(w, http.StatusBadRequest, "last: write a number between 1 and 10000")
		return
	}
	if refused(w, in.Check()) {
		return
	}
	list, groups, err := m.Show(r.Context(), in.Selector, in.Last)
	s.audit(r, "show", auditName(in.Selector), groups, err)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if list == nil {
		list = []service.Record{}
	}
	writeJSON(w, http.StatusOK, shown{list, m.Others(r.Context(), in.Selector, groups)})
}

func (s *Server) search(w http.ResponseWriter, r *http.Request, m *service.Service) {
	var in searchRequest
	if err := readJSON(w, r, &in); err != nil || strings.TrimSpace(in.Query) == "" {
		writeError(w, http.StatusBadRequest, "say what to search for as query"+because(err))
		return
	}
	if refused(w, in.Check()) {
		return
	}
	list, groups, err := m.Search(r.Context(), in.Selector, in.Query, in.All)
	s.audit(r, "search", auditName(in.Selector), groups, err)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if list == nil {
		list = []service.Found{}
	}
	writeJSON(w, http.StatusOK, found{list, m.Others(r.Context(), in.Selector, groups)})
}

func (s *Server) promote(w http.ResponseWriter, r *http.Request, m *service.Service) {
	var in promoteRequest
	if err := readJSON(w, r, &in); err != nil || strings.TrimSpace(in.Text) == "" {
		writeError(w, http.StatusBadRequest, "say what to keep as text, and its kind, one of "+strings.Join(graphiti.Kinds, ", ")+because(err))
		return
	}
	if refused(w, in.Check()) {
		return
	}
	groups, err := m.Promote(r.Context(), in.Selector, in.Promotion)
	s.audit(r, "promote", auditName(in.Selector), groups, err, slog.String("kind", in.Kind))
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, promoted{groups})
}

func (s *Server) importLines(w http.ResponseWriter, r *http.Request, m *service.Service) {
	var in importRequest
	if err := readBody(w, r, &in, 16<<20); err != nil || len(in.Lines) == 0 || len(in.Lines) > maxLines {
		writeError(w, http.StatusBadRequest, "send between 1 and 1000 lines"+because(err))
		return
	}
	if refused(w, in.Check()) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // it waits for the memory
	done, err := m.Import(r.Context(), in.Selector, in.Lines)
	s.audit(r, "import", auditName(in.Selector), done.Groups, err, slog.Int("kept", done.Kept))
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, done)
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
