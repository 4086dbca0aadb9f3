package admin

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Curated is what a person can do with what is remembered, beside forgetting.
type Curated interface {
	// Show returns the last n messages of what a selector means, oldest first,
	// and the groups that were looked into.
	Show(ctx context.Context, s Selector, n int) (list []Record, groups []string, err error)

	// Search returns what would be found for a text, best first; of what would
	// not be shown only where all is set. It also returns the groups that were
	// searched.
	Search(ctx context.Context, s Selector, query string, all bool) (list []Found, groups []string, err error)

	// Others returns the groups of the same owner that were not looked into,
	// where only the person was named.
	Others(ctx context.Context, s Selector, groups []string) []ledger.Owned

	// Promote keeps a text of a kind in a scope, once, and returns the groups.
	Promote(ctx context.Context, s Selector, p Promotion) ([]string, error)

	// Import keeps lines in their order, each once. It waits while too many
	// wait for the memory.
	Import(ctx context.Context, s Selector, lines []Line) (Imported, error)
}

// Found is a fact that was found.
type Found struct {
	Group   string `json:"group"`
	Scope   string `json:"scope"`
	Text    string `json:"text"`
	Verdict string `json:"verdict"` // shown, or why not
	Since   string `json:"since,omitempty"`
}

// Promotion is a text worth keeping as it stands.
type Promotion struct {
	Kind  string `json:"kind"`  // one of graphiti.Kinds
	Scope string `json:"scope"` // user, workspace, session or agent
	Text  string `json:"text"`
}

// Line is one line of an import.
type Line struct {
	Scope     string `json:"scope,omitempty"`     // user, workspace, session or agent; default user
	Group     string `json:"group,omitempty"`     // instead of a scope
	User      string `json:"user,omitempty"`      // whose it is; default as in the call
	Workspace string `json:"workspace,omitempty"` // likewise
	Role      string `json:"role"`                // user or assistant
	Name      string `json:"name,omitempty"`      // who speaks
	Content   string `json:"content"`
	Timestamp string `json:"timestamp,omitempty"` // RFC 3339
	Session   string `json:"session,omitempty"`   // the conversation it was said in
	ID        string `json:"id,omitempty"`        // tells equal lines apart
	Number    int    `json:"number,omitempty"`    // of its line in a file, for errors; default its place in the call
}

// Imported counts lines.
type Imported struct {
	Kept  int `json:"kept"`
	Known int `json:"known"` // that were there already

	Groups []string `json:"-"`
}

// shown, found and promoted are the answers to show, search and promote.
type (
	shown struct {
		Messages []Record       `json:"messages"`
		Others   []ledger.Owned `json:"others,omitempty"` // groups of theirs that were not looked into
	}
	found struct {
		Facts  []Found        `json:"facts"`
		Others []ledger.Owned `json:"others,omitempty"`
	}
	promoted struct {
		Groups []string `json:"groups"`
	}
)

type showRequest struct {
	Selector
	Last int `json:"last,omitempty"`
}

type searchRequest struct {
	Selector
	Query string `json:"query"`
	All   bool   `json:"all,omitempty"`
}

type promoteRequest struct {
	Selector
	Promotion
}

type importRequest struct {
	Selector
	Lines []Line `json:"lines"`
}

const (
	maxShown = 10_000
	maxLines = 1000
)

func (s *Server) show(w http.ResponseWriter, r *http.Request, m Remembered) {
	in := showRequest{Last: 50}
	if err := readJSON(w, r, &in); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if in.Last < 1 || in.Last > maxShown {
		writeError(w, http.StatusBadRequest, "last: write a number between 1 and 10000")
		return
	}
	if refused(w, in.check()) {
		return
	}
	list, groups, err := m.Show(r.Context(), in.Selector, in.Last)
	s.audit(r, "show", auditName(in.Selector), groups, err)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if list == nil {
		list = []Record{}
	}
	writeJSON(w, http.StatusOK, shown{list, m.Others(r.Context(), in.Selector, groups)})
}

func (s *Server) search(w http.ResponseWriter, r *http.Request, m Remembered) {
	var in searchRequest
	if err := readJSON(w, r, &in); err != nil || strings.TrimSpace(in.Query) == "" {
		writeError(w, http.StatusBadRequest, "say what to search for as query"+because(err))
		return
	}
	if refused(w, in.check()) {
		return
	}
	list, groups, err := m.Search(r.Context(), in.Selector, in.Query, in.All)
	s.audit(r, "search", auditName(in.Selector), groups, err)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if list == nil {
		list = []Found{}
	}
	writeJSON(w, http.StatusOK, found{list, m.Others(r.Context(), in.Selector, groups)})
}

func (s *Server) promote(w http.ResponseWriter, r *http.Request, m Remembered) {
	var in promoteRequest
	if err := readJSON(w, r, &in); err != nil || strings.TrimSpace(in.Text) == "" {
		writeError(w, http.StatusBadRequest, "say what to keep as text, and its kind, one of "+strings.Join(graphiti.Kinds, ", ")+because(err))
		return
	}
	if refused(w, in.check()) {
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

func (s *Server) importLines(w http.ResponseWriter, r *http.Request, m Remembered) {
	var in importRequest
	if err := readBody(w, r, &in, 16<<20); err != nil || len(in.Lines) == 0 || len(in.Lines) > maxLines {
		writeError(w, http.StatusBadRequest, "send between 1 and 1000 lines"+because(err))
		return
	}
	if refused(w, in.check()) {
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
