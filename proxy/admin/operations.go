package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	root    = "/api/v1/"
	maxBody = 1 << 20 // bytes, if an operation sets no limit
)

// Request returns the method, path and body of a call of an operation. The input of a
// read-only operation, a struct, is in the query.
func Request(s service.Spec, in any) (method, path string, body []byte, err error) {
	if !s.Reads {
		body, err = json.Marshal(in)
		return http.MethodPost, root + s.Name, body, err
	}
	query := make(url.Values)
	v := reflect.ValueOf(in)
	for f := range v.Type().Fields() {
		if f.IsExported() {
			query.Set(nameOf(f), fmt.Sprint(v.FieldByIndex(f.Index)))
		}
	}
	return http.MethodGet, root + s.Name + "?" + query.Encode(), nil, nil
}

// serve answers the calls of an operation: it reads the input, runs the operation, writes
// the audit line and answers.
func (s *Server) serve(op service.Mountable) http.HandlerFunc {
	spec, _, _, many := op.Describe()
	return func(w http.ResponseWriter, r *http.Request) {
		host := s.o.Host.Now()
		if host.Memory == nil && !spec.WithoutMemory {
			writeError(w, http.StatusNotFound, host.Status(r.Context(), false).Memory.Off())
			return
		}
		if many {
			w.Header().Set("Content-Type", "application/jsonl")
		}
		lines := json.NewEncoder(w)
		out, entry, err := op.Call(r.Context(), host, callerOf(r.Context()), func(in any) error {
			if spec.Reads {
				return readQuery(r.URL.Query(), in)
			}
			return readBody(w, r, in, cmp.Or(spec.Size, maxBody))
		}, lines.Encode)
		if invalid := (service.InvalidError{}); errors.As(err, &invalid) {
			writeJSON(w, http.StatusBadRequest, refusal{err.Error(), true})
			return
		}
		if forbidden := (service.ForbiddenError{}); errors.As(err, &forbidden) {
			s.audit(r, &service.Entry{What: spec.Name}, err)
			writeError(w, http.StatusForbidden, err.Error())
			return
		}
		if entry.What != "" {
			s.audit(r, &entry, err)
		}
		switch {
		case many && err != nil: // after the lines already sent
			_ = lines.Encode(refusal{Error: err.Error()})
		case err != nil:
			writeError(w, statusOf[spec.Fails], err.Error())
		case !many:
			writeJSON(w, http.StatusOK, out)
		}
	}
}

var statusOf = map[service.Failure]int{
	service.OfInput: http.StatusBadRequest, service.OfFiles: http.StatusInternalServerError, service.OfMemory: http.StatusBadGateway,
}

// audit writes a line about a read or a change of memory: the operation, the owner, the
// caller, the address, the groups and the success. The line has no text, and does not
// depend on log.level.
func (s *Server) audit(r *http.Request, e *service.Entry, err error) {
	groups := e.Groups
	if groups == nil {
		groups = []string{}
	}
	s.o.Audit.LogAttrs(r.Context(), slog.LevelInfo, "audit", append([]slog.Attr{
		slog.String("what", e.What), slog.String("who", e.Who), slog.String("by", callerOf(r.Context()).Name), slog.String("peer", s.peerOf(r)),
		slog.Any("groups", groups), slog.Bool("done", err == nil),
	}, e.More...)...)
}

// auditPage writes the same line for an operation on a page.
func (s *Server) auditPage(r *http.Request, e *service.Entry, err error) {
	of := *e
	of.More = append([]slog.Attr{slog.Bool("page", true)}, e.More...)
	s.audit(r, &of, err)
}

// readBody reads a body of at most most bytes. It requires the type JSON, because a form
// may come from any web page.
func readBody(w http.ResponseWriter, r *http.Request, v any, most int64) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return errors.New("the body must be sent with Content-Type: application/json")
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the body cannot be read: %w", err)
	}
	return nil
}

// readQuery reads an input, a pointer to a struct, from the query of an address. It skips
// empty parameters.
func readQuery(q url.Values, in any) error {
	v := reflect.ValueOf(in).Elem()
	for f := range v.Type().Fields() {
		name := nameOf(f)
		said := q.Get(name)
		if said == "" || !f.IsExported() {
			continue
		}
		switch to := v.FieldByIndex(f.Index); to.Kind() {
		case reflect.Bool:
			b, err := strconv.ParseBool(said)
			if err != nil {
				return fmt.Errorf("%s: %q is not true or false", name, said)
			}
			to.SetBool(b)
		case reflect.Int:
			n, err := strconv.Atoi(said)
			if err != nil {
				return fmt.Errorf("%s: %q is not a number", name, said)
			}
			to.SetInt(int64(n))
		default:
			to.SetString(said)
		}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // fails only after the client has left
}

// refusal is the body of an error.
type refusal struct {
	Error   string `json:"error"`
	Invalid bool   `json:"invalid,omitempty"` // the input is wrong
}

func writeError(w http.ResponseWriter, code int, message string) {
	writeJSON(w, code, refusal{Error: message})
}
