package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// defaultLimit is how many turns are listed where nobody says.
const defaultLimit = 50

func (s *Server) queue(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.o.Counts())
}

func (s *Server) turns(w http.ResponseWriter, r *http.Request) {
	if s.o.Memory == nil {
		s.memoryIsOff(w, r)
		return
	}
	o, err := listOptions(r.URL.Query())
	if err == nil {
		err = service.CheckList(o)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	list, err := s.o.Memory.Queue().List(r.Context(), o)
	if o.Text {
		var groups []string
		for i := range list.Turns {
			if group := list.Turns[i].Group; !slices.Contains(groups, group) {
				groups = append(groups, group)
			}
		}
		s.audit(r, "show queued turns", "the queue", groups, err, slog.Int("turns", len(list.Turns)))
	}
	if err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func listOptions(q url.Values) (o ledger.ListOptions, err error) {
	o = ledger.ListOptions{Condition: ledger.Condition(q.Get("state")), Group: q.Get("group"), Limit: defaultLimit}
	if v := q.Get("limit"); v != "" {
		if o.Limit, err = strconv.Atoi(v); err != nil {
			return o, fmt.Errorf("limit: %q is not a number", v)
		}
	}
	if v := q.Get("text"); v != "" {
		if o.Text, err = strconv.ParseBool(v); err != nil {
			return o, fmt.Errorf("text: %q is not true or false", v)
		}
	}
	return o, nil
}

// change performs retry or drop.
func (s *Server) change(what string, do func(service.Queue, context.Context, service.Selection) (service.Affected, error)) http.HandlerFunc {
	return call(s, what, http.StatusInternalServerError, service.Selection{}, maxBody,
		func(ctx context.Context, m *service.Service, in *service.Selection) (service.Affected, entry, error) {
			done, err := do(m.Queue(), ctx, *in)
			return done, entry{who: "the queue", more: []any{slog.Int("turns", done.Turns)}}, err
		})
}

// maxBody is how many bytes most bodies may have.
const maxBody = 1 << 20

// readBody reads a small body. Asking for its type keeps forms of web pages
// out, which may be sent from anywhere.
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

// memoryIsOff answers what needs a memory, and says why there is none.
func (s *Server) memoryIsOff(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, s.o.Status(r.Context(), false).Memory.Off())
}

func writeError(w http.ResponseWriter, code int, message string) {
	writeJSON(w, code, map[string]string{"error": message})
}
