package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Queue is what can be done with the turns in the spool. With no numbers,
// Retry and Drop mean all dead turns.
type Queue interface {
	Letters(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error)
	Retry(numbers []int64) (int, error)
	Drop(numbers []int64) (int, error)
}

// Letters is the answer to GET /api/v1/queue/turns.
type Letters struct {
	All   int           `json:"all"` // that fit, listed or not
	Turns []ledger.Item `json:"turns"`
}

// Selection is the body of POST /api/v1/queue/retry and drop: numbers of dead
// turns, or all of them.
type Selection struct {
	Numbers []int64 `json:"numbers,omitempty"`
	All     bool    `json:"all,omitempty"`
}

// Affected is the answer to them.
type Affected struct {
	Turns int `json:"turns"`
}

const (
	defaultLimit = 50
	maxLimit     = 1000
	maxNumbers   = 10000
)

func (s *Server) queue(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.o.Counts())
}

func (s *Server) turns(w http.ResponseWriter, r *http.Request) {
	if s.o.Queue == nil {
		s.memoryIsOff(w, r)
		return
	}
	o, err := listOptions(r.URL.Query())
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	list, all, err := s.o.Queue.Letters(r.Context(), o)
	if o.Text {
		var groups []string
		for i := range list {
			if !slices.Contains(groups, list[i].Group) {
				groups = append(groups, list[i].Group)
			}
		}
		s.audit(r, "show queued turns", "the queue", groups, err, slog.Int("turns", len(list)))
	}
	if err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, Letters{all, list})
}

func listOptions(q url.Values) (o ledger.ListOptions, err error) {
	o = ledger.ListOptions{Condition: ledger.Condition(q.Get("state")), Group: q.Get("group"), Limit: defaultLimit}
	if o.Condition != "" && !slices.Contains(ledger.Conditions, o.Condition) {
		return o, fmt.Errorf("state: %q is not one of %s, %s, %s", o.Condition, ledger.Waiting, ledger.UnderWay, ledger.Dead)
	}
	if v := q.Get("limit"); v != "" {
		if o.Limit, err = strconv.Atoi(v); err != nil || o.Limit < 1 || o.Limit > maxLimit {
			return o, fmt.Errorf("limit: %q is not a number from 1 to %d", v, maxLimit)
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
func (s *Server) change(what string, do func(Queue, []int64) (int, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.o.Queue == nil {
			s.memoryIsOff(w, r)
			return
		}
		var sel Selection
		if err := readJSON(w, r, &sel); err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		if sel.All == (len(sel.Numbers) > 0) || len(sel.Numbers) > maxNumbers {
			writeError(w, http.StatusBadRequest, fmt.Sprintf(`name the turns as {"numbers":[…]}, at most %d, or write {"all":true}`, maxNumbers))
			return
		}
		n, err := do(s.o.Queue, sel.Numbers)
		s.audit(r, what, "the queue", nil, err, slog.Int("turns", n))
		if err != nil {
			writeError(w, http.StatusInternalServerError, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, Affected{n})
	}
}

// readJSON reads a small body. Asking for its type keeps forms of web pages
// out, which may be sent from anywhere.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error { return readBody(w, r, v, maxBody) }

// maxBody is how many bytes most bodies may have.
const maxBody = 1 << 20

func readBody(w http.ResponseWriter, r *http.Request, v any, most int64) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return fmt.Errorf("the body must be sent with Content-Type: application/json")
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	return nil
}

// memoryIsOff answers what needs a memory, and says why there is none.
func (s *Server) memoryIsOff(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, MemoryIsOff(s.o.Status(r.Context(), false)))
}

// MemoryIsOff says why there is no memory, and what to do.
func MemoryIsOff(st Status) string {
	text := "the memory is off"
	if m := st.Memory; m.Why != "" {
		text = joined(text+": "+m.Why, m.Remedy)
	}
	return text
}

func writeError(w http.ResponseWriter, code int, message string) {
	writeJSON(w, code, map[string]string{"error": message})
}
