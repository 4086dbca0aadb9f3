package admin

import (
	"encoding/json"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/service"
)

// Forgotten is the answer to POST /api/v1/memory/forget.
type Forgotten struct {
	Group   string `json:"group"`
	Session string `json:"session,omitempty"` // what was said in it, and not the whole group
	Blocks  int    `json:"blocks"`            // inserted blocks that were emptied
}

// Meant is the answer to POST /api/v1/memory/groups.
type Meant struct {
	Groups []ledger.Owned `json:"groups"`
	Parts  []ledger.Owned `json:"parts,omitempty"` // of which what was said in a session is meant
}

// remembers answers requests that need a memory.
func (s *Server) remembers(next func(http.ResponseWriter, *http.Request, *service.Service)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Memory == nil {
			s.memoryIsOff(w, r)
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

func (s *Server) groups(w http.ResponseWriter, r *http.Request, m *service.Service) {
	var sel service.Selector
	if err := readJSON(w, r, &sel); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if sel == (service.Selector{}) {
		writeError(w, http.StatusBadRequest, "say whose memory is meant: user, agent, workspace, session, group or credential")
		return
	}
	if refused(w, sel.Check()) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // a session may be looked for in all of them
	list, err := m.Groups(r.Context(), sel)
	var parts []ledger.Owned
	if err == nil {
		parts, err = m.Parts(r.Context(), sel)
	}
	found := make([]string, 0, len(list)+len(parts))
	for _, o := range list {
		found = append(found, o.Group)
	}
	for _, o := range parts {
		found = append(found, o.Group)
	}
	s.audit(r, "list groups", auditName(sel), found, err)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if list == nil {
		list = []ledger.Owned{}
	}
	writeJSON(w, http.StatusOK, Meant{list, parts})
}

func (s *Server) forget(w http.ResponseWriter, r *http.Request, m *service.Service) {
	var sel service.Selector
	if err := readJSON(w, r, &sel); err != nil || !isOne(sel) {
		writeError(w, http.StatusBadRequest, `name one group as {"group":"…"}, and for a session in it "session" and whose it is; POST /api/v1/memory/groups finds them`)
		return
	}
	if refused(w, sel.Check()) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // it waits for the memory
	var blocks int
	var err error
	if sel.Session == "" {
		blocks, err = m.Forget(r.Context(), sel.Group)
	} else {
		blocks, err = m.ForgetSession(r.Context(), sel)
	}
	s.audit(r, "forget", auditName(sel), []string{sel.Group}, err)
	if err != nil {
		writeError(w, http.StatusBadGateway, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, Forgotten{sel.Group, sel.Session, blocks})
}

// isOne reports whether a selector names a group, or a session in it.
func isOne(s service.Selector) bool {
	return s.Group != "" && s.Agent == "" && s.Workspace == "" && (s.Session != "" || s.User == "" && s.Credential == "")
}

// export answers JSON Lines. One that was cut off ends with a line that says
// so.
func (s *Server) export(w http.ResponseWriter, r *http.Request, m *service.Service) {
	q := r.URL.Query()
	sel := service.Selector{Group: q.Get("group"), Session: q.Get("session"), User: q.Get("user"), Credential: q.Get("credential")}
	if !isOne(sel) {
		writeError(w, http.StatusBadRequest, "name the group as ?group=…, and for a session in it session and whose it is")
		return
	}
	if refused(w, sel.Check()) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // as long as it takes
	w.Header().Set("Content-Type", "application/jsonl")
	enc := json.NewEncoder(w)
	encode := func(rec service.Record) error { return enc.Encode(rec) }
	var err error
	if sel.Session == "" {
		err = m.Export(r.Context(), sel.Group, encode)
	} else {
		err = m.ExportSession(r.Context(), sel, encode)
	}
	s.audit(r, "export", auditName(sel), []string{sel.Group}, err)
	if err != nil {
		_ = enc.Encode(map[string]string{"error": err.Error()})
	}
}
