package graphiti

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrTooLarge means that an answer exceeds the read limit.
var ErrTooLarge = errors.New("the answer is too large")

// StatusError is a failure reported by the memory service.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // zero if absent
	Detail     string        // the server's truncated text, which may quote the request
}

// Error omits the detail, because it may quote the request.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the memory service answered %d %s", e.Code, http.StatusText(e.Code))
}

// Retryable reports whether a retry may succeed. A server that rejects a message's content
// will reject it again. Every other failure comes from the service, its address or a proxy,
// and is fixable.
func Retryable(err error) bool {
	var s *StatusError
	if !errors.As(err, &s) {
		return true
	}
	return s.Code != http.StatusRequestEntityTooLarge && s.Code != http.StatusUnprocessableEntity
}

// Remedy returns the remedy for a memory service's error, or "" if there is none.
func Remedy(err error) string {
	var left *RemainsError
	if errors.As(err, &left) {
		return left.remedy()
	}
	if r := LocalRemedy(err); r != "" {
		return r
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return "start Graphiti, or correct memory.endpoint"
	}
	var s *StatusError
	if !errors.As(err, &s) || Retryable(err) && s.Code >= 500 {
		return Diagnose(err).Remedy()
	}
	switch s.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check memory.api_key: the service, or a proxy in front of it, rejects it"
	case http.StatusProxyAuthRequired:
		return "an HTTP proxy requires credentials: check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return "check memory.endpoint: the server there lacks Graphiti's calls"
	case http.StatusMisdirectedRequest:
		return "Graphiti's MCP server accepts only localhost as the Host of a request: start it with --host 0.0.0.0 (1.1.2 or newer; it has no authentication, so restrict its network), " +
			"or have a reverse proxy in front of it send Host: localhost:8000"
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return ""
	}
	if s.Code/100 == 3 {
		return "check memory.endpoint: it redirects to another address, and the proxy does not follow redirects"
	}
	if !Retryable(err) {
		return "if Graphiti rejects all turns, run graphiti-proxy test-connection: this version of Graphiti, or a gateway in front of it, expects other messages than the proxy sends"
	}
	return "check memory.endpoint, and any proxy in front of it: the answer does not match the request"
}

// FileError is an error of a file that a setting names, before anything was sent.
type FileError struct {
	error
	Remedy string
}

// NewFileError returns the error of a file that a setting names.
func NewFileError(setting string, err error, remedy string) error {
	return &FileError{fmt.Errorf("%s: %w", setting, err), remedy + ", or correct " + setting}
}

// LocalRemedy returns the remedy for a setting's file or a refused certificate, or "" for other errors.
func LocalRemedy(err error) string {
	var file *FileError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var op *net.OpError
	switch {
	case errors.As(err, &file):
		return file.Remedy
	case errors.As(err, &authority):
		return "Graphiti's certificate is from an authority that this machine does not know: set SSL_CERT_FILE to a PEM file with the authority's certificate, and restart the proxy"
	case errors.As(err, &name):
		return "write a name of Graphiti's certificate in memory.endpoint, or give Graphiti a certificate for this one"
	case errors.As(err, &op) && op.Op == "remote error": // an alert of TLS
		return "set memory.client_certificate to a PEM file with a certificate and key that Graphiti accepts"
	}
	return ""
}

// Unsent reports whether a failed call certainly had no effect: the service was unreachable, the call lacked a file,
// or its answer reports that it did nothing.
func Unsent(err error) bool {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code < 500 || s.Code == http.StatusServiceUnavailable
	}
	var op *net.OpError
	var file *FileError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &file)
}

// BroadQuery returns a query that matches any fact of a group. Most indexes of Graphiti
// contain the group ID; for the others, the query adds frequent words.
func BroadQuery(group string) string {
	return group + " user assistant person name called named likes prefers uses works lives wants needs says said about project agent system team"
}

// RemainsError means that deleted messages or facts of a group are still visible.
type RemainsError struct {
	Group    string
	Episodes int // number of listed episodes
	Facts    int // number of facts in a search

	// Part reports whether only part of the group was selected for deletion.
	Part bool
}

// Error contains no text of the messages.
func (e *RemainsError) Error() string {
	return fmt.Sprintf("the memory confirmed the deletion, and still lists %d episodes and %d facts", e.Episodes, e.Facts)
}

// OrNil returns e, or nil if there are no remains.
func (e *RemainsError) OrNil() error {
	if e.Episodes+e.Facts == 0 {
		return nil
	}
	return e
}

// remedy says what to do about it. Graphiti on FalkorDB reads the graph named after the group, but its REST
// service, and older MCP servers for single messages, delete in the default graph.
func (e *RemainsError) remedy() string {
	if e.Part {
		return "if Graphiti uses FalkorDB, it may delete in another graph than it reads: delete all of the group with graphiti-proxy memory forget --group " + e.Group +
			", or use Graphiti's MCP server of version 1.1.2 or newer; otherwise find the cause in Graphiti's log"
	}
	return "if Graphiti uses FalkorDB, it may delete in another graph than it reads: delete the group with redis-cli GRAPH.DELETE " + e.Group +
		" on FalkorDB, and use Graphiti's MCP server of version 1.1.2 or newer, or Neo4j, to delete from here; otherwise find the cause in Graphiti's log"
}

// NoRedirect is a CheckRedirect for clients that send conversations or credentials: consent is
// for one address, and a redirect would carry them to another.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// SetBearer sets the header of a call to the token that key returns, unless it is empty.
func SetBearer(h http.Header, key func() string) {
	if key != nil && key() != "" {
		h.Set("Authorization", "Bearer "+key())
	}
}
