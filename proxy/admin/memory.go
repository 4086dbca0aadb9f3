package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// ShowRequest is the body of POST /api/v1/memory/show.
type ShowRequest struct {
	service.Selector
	Last int `json:"last,omitempty"`
}

// ListRequest is the body of POST /api/v1/memory/list.
type ListRequest struct {
	service.Selector
	Limit int `json:"limit,omitempty"`
}

// SearchRequest is the body of POST /api/v1/memory/search.
type SearchRequest struct {
	service.Selector
	Query string `json:"query"`
	All   bool   `json:"all,omitempty"`
}

// PromoteRequest is the body of POST /api/v1/memory/promote.
type PromoteRequest struct {
	service.Selector
	service.Promotion
}

// ImportRequest is the body of POST /api/v1/memory/import.
type ImportRequest struct {
	service.Selector
	Lines []service.Line `json:"lines"`
}

// maxImportBody is how many bytes an import may have.
const maxImportBody = 16 << 20

// entry is what an audit line says of one call.
type entry struct {
	who    string
	groups []string
	more   []any
}

// unhurried lets a call take as long as it needs: it waits for the memory.
func unhurried(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(noDeadline)
		next(w, r)
	}
}

// call translates one call of the service: it reads the body into in,
// calls, writes the audit line and answers. A failure that is not the caller's
// is answered with failed.
func call[In, Out any](s *Server, what string, failed int, in In, most int64, do func(context.Context, *service.Service, *In) (Out, entry, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Memory == nil {
			s.memoryIsOff(w, r)
			return
		}
		in := in
		if err := readBody(w, r, &in, most); err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		out, e, err := do(r.Context(), s.o.Memory, &in)
		if invalid := (service.InvalidError{}); errors.As(err, &invalid) {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		s.audit(r, what, e.who, e.groups, err, e.more...)
		if err != nil {
			writeError(w, failed, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func (s *Server) groups() http.HandlerFunc {
	return call(s, "list groups", http.StatusBadRequest, service.Selector{}, maxBody,
		func(ctx context.Context, m *service.Service, in *service.Selector) (service.Meant, entry, error) {
			found, err := m.Find(ctx, *in)
			return found, entry{who: auditName(*in), groups: found.All()}, err
		})
}

func (s *Server) show() http.HandlerFunc {
	return call(s, "show", http.StatusBadRequest, ShowRequest{Last: 50}, maxBody,
		func(ctx context.Context, m *service.Service, in *ShowRequest) (service.Shown, entry, error) {
			shown, err := m.Show(ctx, in.Selector, in.Last)
			return shown, entry{who: auditName(in.Selector), groups: shown.Groups}, err
		})
}

func (s *Server) catalog() http.HandlerFunc {
	return call(s, "list", http.StatusBadRequest, ListRequest{Limit: 50}, maxBody,
		func(ctx context.Context, m *service.Service, in *ListRequest) (service.Catalog, entry, error) {
			all, err := m.Catalog(ctx, in.Selector, in.Limit)
			return all, entry{who: auditName(in.Selector), groups: all.Groups}, err
		})
}

func (s *Server) search() http.HandlerFunc {
	return call(s, "search", http.StatusBadRequest, SearchRequest{}, maxBody,
		func(ctx context.Context, m *service.Service, in *SearchRequest) (service.Searched, entry, error) {
			found, err := m.Search(ctx, in.Selector, in.Query, in.All)
			return found, entry{who: auditName(in.Selector), groups: found.Groups}, err
		})
}

func (s *Server) promote() http.HandlerFunc {
	return call(s, "promote", http.StatusBadRequest, PromoteRequest{}, maxBody,
		func(ctx context.Context, m *service.Service, in *PromoteRequest) (service.Promoted, entry, error) {
			kept, err := m.Promote(ctx, in.Selector, in.Promotion)
			return kept, entry{auditName(in.Selector), kept.Groups, []any{slog.String("kind", in.Kind)}}, err
		})
}

func (s *Server) importLines() http.HandlerFunc {
	return call(s, "import", http.StatusBadRequest, ImportRequest{}, maxImportBody,
		func(ctx context.Context, m *service.Service, in *ImportRequest) (service.Imported, entry, error) {
			done, err := m.Import(ctx, in.Selector, in.Lines)
			return done, entry{auditName(in.Selector), done.Groups, []any{slog.Int("kept", done.Kept)}}, err
		})
}

// forgetBody is a selector each field of which says something. An empty one, as of
// a variable that is not set, would forget more than was meant.
type forgetBody struct{ service.Selector }

func (f *forgetBody) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var fields map[string]string
	if err := errors.Join(d.Decode(&f.Selector), json.Unmarshal(b, &fields)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] == "" {
			return fmt.Errorf("%s is empty: leave it out, or say what is meant", name)
		}
	}
	return nil
}

func (s *Server) forget() http.HandlerFunc {
	return call(s, "forget", http.StatusBadGateway, forgetBody{}, maxBody,
		func(ctx context.Context, m *service.Service, in *forgetBody) (service.Forgotten, entry, error) {
			done, err := m.Forget(ctx, in.Selector)
			if in.Card != "" { // what it says is nobody's business here
				return done, entry{auditName(in.Selector), nil, []any{slog.Int("card_lines", len(done.Card))}}, err
			}
			return done, entry{who: auditName(in.Selector), groups: []string{in.Group}}, err
		})
}

func (s *Server) accept() http.HandlerFunc {
	return call(s, "accept a person", http.StatusBadGateway, service.Acceptance{}, maxBody,
		func(ctx context.Context, m *service.Service, in *service.Acceptance) (service.Accepted, entry, error) {
			done, err := m.Accept(ctx, *in)
			return done, entry{who: "user=" + in.ID, more: []any{slog.Bool("keep", in.Keep)}}, err
		})
}

// export answers JSON Lines. One that was interrupted ends with a line that says
// so.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	if s.o.Memory == nil {
		s.memoryIsOff(w, r)
		return
	}
	q := r.URL.Query()
	sel := service.Selector{Group: q.Get("group"), Session: q.Get("session"), User: q.Get("user"), Credential: q.Get("credential")}
	w.Header().Set("Content-Type", "application/jsonl")
	enc := json.NewEncoder(w)
	err := s.o.Memory.Export(r.Context(), sel, func(rec service.Record) error { return enc.Encode(rec) })
	if invalid := (service.InvalidError{}); errors.As(err, &invalid) {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	s.audit(r, "export", auditName(sel), []string{sel.Group}, err)
	if err != nil {
		_ = enc.Encode(map[string]string{"error": err.Error()})
	}
}
