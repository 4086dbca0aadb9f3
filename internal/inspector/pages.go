package inspector

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// Options configures Pages. All are required.
type Options struct {
	Host *service.Host
	Log  *slog.Logger

	// Audit writes the audit line for a visitor's call of an operation; err is the error of
	// the call, or nil.
	Audit func(r *http.Request, e *service.Entry, err error)
}

// Visit is one request of an admitted visitor. For methods other than GET and HEAD, the
// caller of Serve has checked Origin and Host.
type Visit struct {
	Caller service.Caller
	Leave  bool //  the visitor has a login to log out of
}

// Pages serves the inspector. It is safe for concurrent use.
type Pages struct {
	o   Options
	mux *http.ServeMux
}

// New returns the pages.
func New(o Options) *Pages {
	p := &Pages{o: o, mux: http.NewServeMux()}
	for pattern, show := range routes {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p.answer(w, r, show)
		})
	}
	return p
}

// routes are the pages and the actions of their forms.
var routes = map[string]func(*visit) error{
	"GET /{$}": (*visit).today,

	"GET /live":      (*visit).live,
	"GET /live/rows": (*visit).liveRows,

	"GET /conversations":       (*visit).conversations,
	"GET /conversation/{hash}": (*visit).conversation,

	"GET /message/{id}":          (*visit).message,
	"POST /message/{id}/end":     changing("end"),
	"POST /message/{id}/forget":  changing("forget"),
	"POST /message/{id}/remove":  changing("remove"),
	"POST /message/{id}/correct": (*visit).correctMessage,
	"POST /message/{id}/pin":     (*visit).pinMessage,
	"POST /message/{id}/restore": changing("restore"),

	"GET /memory":         (*visit).memories,
	"GET /memory/show":    (*visit).timeline,
	"GET /memory/weeks":   (*visit).weeks,
	"POST /memory/lines":  (*visit).settle,
	"POST /memory/held":   (*visit).settleHeld,
	"POST /memory/export": func(v *visit) error { return v.exportOnly(nil) },
	"GET /memory/import":  (*visit).importForm,
	"POST /memory/import": (*visit).importFile,
	"GET /memory/forget":  (*visit).forgetForm,
	"POST /memory/forget": (*visit).forget,

	"GET /search":         (*visit).search,
	"POST /search/change": (*visit).changeMany,

	"GET /changes":       (*visit).changes,
	"POST /changes/undo": (*visit).undoChanges,

	"GET /delivery":        (*visit).delivery,
	"POST /delivery/retry": (*visit).retry,
	"POST /delivery/drop":  (*visit).drop,

	"GET /people":         (*visit).people,
	"POST /people/accept": (*visit).accept,
}

// maxForm bounds the form of a page, in bytes.
const maxForm = 1 << 20

// visitKey is the context key of the Visit of a request.
type visitKey struct{}

// Serve serves a page, or the action of its form.
func (p *Pages) Serve(w http.ResponseWriter, r *http.Request, v Visit) {
	r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
	_, pattern := p.mux.Handler(r)
	switch {
	case pattern == "":
		p.answer(w, r, func(*visit) error { return errNowhere })
		return
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		r.Body = http.NoBody
	case pattern != "POST /memory/import": // the import bounds its file itself
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	p.mux.ServeHTTP(w, r)
}

func (p *Pages) answer(w http.ResponseWriter, r *http.Request, show func(*visit) error) {
	in, _ := r.Context().Value(visitKey{}).(Visit) // Serve put it there
	v := &visit{Visit: in, p: p, w: w, r: r, room: roomForText}
	if err := show(v); err != nil {
		v.fail(err)
	}
}
