package admin

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Remembered is what can be done with what is remembered.
type Remembered interface {
	Curated

	// Groups finds the groups that a selector means as a whole, and Parts those
	// in which something lies of the session that it names, whose own group is
	// among the others.
	Groups(ctx context.Context, s Selector) ([]ledger.Owned, error)
	Parts(ctx context.Context, s Selector) ([]ledger.Owned, error)

	// Forget empties a group everywhere, and returns how many inserted blocks
	// it emptied. ForgetSession empties what was said in a session in one of its
	// groups.
	Forget(ctx context.Context, group string) (blocks int, err error)
	ForgetSession(ctx context.Context, s Selector) (blocks int, err error)

	// Export calls f for everything that is kept of a group, ExportSession for
	// what is of a session in one of its groups.
	Export(ctx context.Context, group string, f func(Record) error) error
	ExportSession(ctx context.Context, s Selector, f func(Record) error) error
}

// Selector says whose memory is meant, and which part of it. At least one
// field is set.
type Selector struct {
	User       string `json:"user,omitempty"`
	Agent      string `json:"agent,omitempty"` // of the user
	Workspace  string `json:"workspace,omitempty"`
	Session    string `json:"session,omitempty"`
	Group      string `json:"group,omitempty"`
	Credential string `json:"credential,omitempty"` // sha256:<hex>, in multi mode; with commas between several
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
	Where  string `json:"where"` // memory, queue, or session: what is noted of one for when its client drops its history
	Role   string `json:"role,omitempty"`
	Text   string `json:"text"`
	Time   string `json:"time,omitempty"`
	Source string `json:"source,omitempty"`
}

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
func (s *Server) remembers(next func(http.ResponseWriter, *http.Request, Remembered)) http.HandlerFunc {
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

func (s *Server) forget(w http.ResponseWriter, r *http.Request, m Remembered) {
	var sel Selector
	if err := readJSON(w, r, &sel); err != nil || !sel.one() {
		writeError(w, http.StatusBadRequest, `name one group as {"group":"…"}, and for a session in it "session" and whose it is; POST /api/v1/memory/groups finds them`)
		return
	}
	if refused(w, sel.check()) {
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

// one reports whether a selector names a group, or a session in it.
func (s Selector) one() bool {
	return s.Group != "" && s.Agent == "" && s.Workspace == "" && (s.Session != "" || s.User == "" && s.Credential == "")
}

// export answers JSON Lines. One that was cut off ends with a line that says
// so.
func (s *Server) export(w http.ResponseWriter, r *http.Request, m Remembered) {
	q := r.URL.Query()
	sel := Selector{Group: q.Get("group"), Session: q.Get("session"), User: q.Get("user"), Credential: q.Get("credential")}
	if !sel.one() {
		writeError(w, http.StatusBadRequest, "name the group as ?group=…, and for a session in it session and whose it is")
		return
	}
	if refused(w, sel.check()) {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(noDeadline) // as long as it takes
	w.Header().Set("Content-Type", "application/jsonl")
	enc := json.NewEncoder(w)
	encode := func(rec Record) error { return enc.Encode(rec) }
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
