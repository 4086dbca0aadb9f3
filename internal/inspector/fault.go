package inspector

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// errorPage is a page with an error as a sentence, and with its remedy.
type errorPage struct {
	Says, Remedy string
	Title        string
	Off          bool // memory is off
	Live         bool // the page Live has the reasons
}

func (v *visit) fail(err error) {
	status, f := v.judge(err)
	if status == http.StatusInternalServerError {
		v.p.o.Log.Warn("inspector page failed", "path", v.r.Pattern, "error", err)
	}
	if err := v.render(status, f.Title, f.main()); err != nil {
		v.p.o.Log.Error("inspector error page failed", "error", err)
		http.Error(v.w, "the page cannot be shown", http.StatusInternalServerError)
	}
}

// judge returns the HTTP status and the page for an error.
func (v *visit) judge(err error) (int, errorPage) {
	says, remedy, _ := strings.Cut(err.Error(), "; to do: ")
	f := errorPage{Says: sentence(says), Remedy: sentence(remedy)}
	var invalid service.InvalidError
	var forbidden service.ForbiddenError
	var of failed
	switch {
	case errors.Is(err, errOff):
		m := v.p.o.Host.Status(v.r.Context(), false).Memory
		return http.StatusOK, errorPage{Title: "The memory is off", Says: sentence(m.Why), Remedy: sentence(m.Remedy), Off: true}
	case errors.As(err, &forbidden):
		return f.titled(http.StatusForbidden, "Access denied")
	case errors.As(err, &invalid):
		return f.titled(http.StatusBadRequest, "Invalid request")
	case errors.Is(err, errUnstored):
		f.Live = true
		return f.titled(http.StatusNotFound, "Nothing is stored")
	case errors.Is(err, errNowhere):
		return f.titled(http.StatusNotFound, "Page not found")
	case errors.Is(err, context.Canceled):
		return f.titled(http.StatusServiceUnavailable, "Interrupted")
	case errors.As(err, &of) && of.kind == service.OfMemory:
		return f.titled(http.StatusBadGateway, "The memory failed")
	case errors.As(err, &of) && of.kind == service.OfInput:
		return f.titled(http.StatusBadRequest, "The input is unusable")
	case errors.As(err, &of):
		return f.titled(http.StatusInternalServerError, "A file of the proxy is unusable")
	}
	return http.StatusInternalServerError, errorPage{Title: "The page cannot be shown", Says: "The proxy's log shows the cause."}
}

func (f errorPage) titled(status int, title string) (int, errorPage) {
	f.Title = title
	return status, f
}

// errNowhere is the error of an unknown address.
var errNowhere = errors.New("no page has this address; to do: choose one from the navigation")

// errUnstored is the error of a conversation without stored messages.
var errUnstored = errors.New("no message of this conversation is stored; to do: open its requests on the page Live, which have the reasons")

// errNothing is the error of a form without a selected row.
var errNothing = failed{service.OfInput, errors.New("no row is selected; to do: go back and select rows")}

// sentence returns an error as a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	if !strings.ContainsAny(strings.Fields(s)[0], "._:=/-") { // not for a setting or a command
		s = upper(s)
	}
	return ended(s)
}

// ended returns s with a full stop, unless s has an end.
func ended(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
