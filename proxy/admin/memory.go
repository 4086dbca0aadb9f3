package admin

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Remembered is what can be done with what is remembered.
type Remembered interface {
	Curated

	// Groups finds the groups that a selector means.
	Groups(ctx context.Context, s Selector) ([]capture.Owned, error)

	// Forget empties a group everywhere, and returns how many inserted blocks
	// it emptied.
	Forget(ctx context.Context, group string) (blocks int, err error)

	// Export calls f for everything that is kept of a group.
	Export(ctx context.Context, group string, f func(Record) error) error
}

// Selector says whose memory is meant, and which part of it. At least one
// field is set.
type Selector struct {
	User       string `json:"user,omitempty"`
	Agent      string `json:"agent,omitempty"` // of the user
	Workspace  string `json:"workspace,omitempty"`
	Session    string `json:"session,omitempty"`
	Group      string `json:"group,omitempty"`
	Credential string `json:"credential,omitempty"` // sha256:<hex>, in multi mode
}

// check refuses a group that cannot be one.
func (s Selector) check() error {
	if s.Group == "" {
		return nil
	}
	return graphiti.CheckGroup(s.Group)
}

// Record is one line of an export.
type Record struct {
	Group  string `json:"group"`
	Name   string `json:"name"`
	Where  string `json:"where"` // memory or queue
	Role   string `json:"role,omitempty"`
	Text   string `json:"text"`
	Time   string `json:"time,omitempty"`
	Source string `json:"source,omitempty"`
}

// Forgotten is the answer to POST /api/v1/memory/forget.
type Forgotten struct {
	Group  string `json:"group"`
	Blocks int    `json:"blocks"` // inserted blocks that were emptied
}

// remembers answers requests that need a memory.
func (s *Server) remembers(next func(http.ResponseWriter, *http.Request, Remembered)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Memory == nil {
			writeError(w, http.StatusNotFound, "the memory is off")
			return
		}
		next(w, r, s.o.Memory)
	}
}

// refused answers a request that cannot be meant, and reports whether it is one.
func refused(w http.ResponseWriter, err error) bool {
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
	}
	return err != nil
}

func (s *Server) groups(w http.ResponseWriter, r *http.Request, m Remembered) {
	var sel Selector
	if err := readJSON(w, r, &sel); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if sel == (Selector{}) {
		writeError(w, http.StatusBadRequest, "say whose memory is meant: user, agent, workspace, session, group or credential")
		return
	}
	if refused(w, sel.check()) {
		return
	}
	list, err := m.Groups(r.Context(), sel)
	found := make([]string, len(list))
	for i := range list {
		found[i] = list[i].Group
	}
	s.audit(r, "list groups", auditName(sel), found, err)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if list == nil {
		list = []capture.Owned{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"groups": list})
}

func (s *Server) forget(w http.ResponseWriter, r *http.Request, m Remembered) {
	var sel Selector
	if err := readJSON(w, r, &sel); err != nil || sel.Group == "" || sel != (Selector{Group: sel.Group}) {
		writeError(w, http.StatusBadRequest, `name one group as {"group":"…"}; POST /api/v1/memory/groups finds them`)
		return
	}
	if refused(w, sel.check()) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // it waits for the memory
	blocks, err := m.Forget(r.Context(), sel.Group)
	s.audit(r, "forget", auditName(sel), []string{sel.Group}, err)
	if err != nil {
		writeError(w, http.StatusBadGateway, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, Forgotten{sel.Group, blocks})
}

// export answers JSON Lines. One that was cut off ends with a line that says
// so.
func (s *Server) export(w http.ResponseWriter, r *http.Request, m Remembered) {
	group := r.URL.Query().Get("group")
	if group == "" {
		writeError(w, http.StatusBadRequest, "name the group as ?group=…")
		return
	}
	if refused(w, graphiti.CheckGroup(group)) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // as long as it takes
	w.Header().Set("Content-Type", "application/jsonl")
	enc := json.NewEncoder(w)
	err := m.Export(r.Context(), group, func(rec Record) error { return enc.Encode(rec) })
	s.audit(r, "export", auditName(Selector{Group: group}), []string{group}, err)
	if err != nil {
		_ = enc.Encode(map[string]string{"error": err.Error()})
	}
}
