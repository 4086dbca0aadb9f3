package graphiti

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrTooLarge says that an answer is larger than we read.
var ErrTooLarge = errors.New("the answer is too large")

// PartError says that Write failed in the middle: the backend accepted the first
// Accepted messages, Err is about the next one, and the rest was not sent.
type PartError struct {
	Accepted int
	Err      error
}

// Error implements error. PartError has no Unwrap, so that nobody takes it for an
// error after which the whole call may be repeated.
func (e *PartError) Error() string {
	return fmt.Sprintf("after %d messages: %v", e.Accepted, e.Err)
}

// StatusError is an answer of the memory service that reports a failure.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // zero when the server did not say
	Detail     string        // the server's own words, bounded; they may quote the request
}

// Error names the status only: the detail may quote what was sent.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the memory service answered %d %s", e.Code, http.StatusText(e.Code))
}

// Retryable reports whether the same call may succeed later. A server that refuses
// a message for its content will refuse it again. Every other failure is about the
// service, its address or a proxy before it, and somebody can mend that.
func Retryable(err error) bool {
	var s *StatusError
	if !errors.As(err, &s) {
		return true
	}
	switch s.Code {
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return false
	case http.StatusBadRequest:
		return !speaksOfContent(s.Detail)
	}
	return true
}

// speaksOfContent reports whether the text of an error is one of FastAPI about the
// body of the request: a proxy before the service answers 400 for other reasons.
func speaksOfContent(detail string) bool {
	var body struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal([]byte(detail), &body) != nil || body.Detail == nil {
		return false
	}
	var text string
	if json.Unmarshal(body.Detail, &text) == nil {
		return text != "" && text != http.StatusText(http.StatusBadRequest)
	}
	var problems []struct {
		Loc []any `json:"loc"`
	}
	if json.Unmarshal(body.Detail, &problems) != nil {
		return false
	}
	for _, p := range problems {
		if len(p.Loc) > 0 && p.Loc[0] == "body" {
			return true
		}
	}
	return false
}

// Remedy says what to do about the error of a memory service; empty if we do not
// know.
func Remedy(err error) string {
	var left *RemainsError
	if errors.As(err, &left) {
		return left.remedy()
	}
	var unlisted *UnlistedError
	if errors.As(err, &unlisted) {
		return unlisted.remedy()
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return "start Graphiti, or correct memory.endpoint"
	}
	var s *StatusError
	if !errors.As(err, &s) || Retryable(err) && s.Code >= 500 {
		return ""
	}
	switch s.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check memory.api_key: the service, or what stands before it, does not accept it"
	case http.StatusProxyAuthRequired:
		return "a proxy on the way wants credentials: check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return "check memory.endpoint: what answers there does not have Graphiti's calls"
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return ""
	}
	if s.Code/100 == 3 {
		return "check memory.endpoint: it answers with another address, and redirects are not followed"
	}
	if Retryable(err) {
		return "check memory.endpoint, and what stands between it and this proxy: the answer is not about what was sent"
	}
	return ""
}

// Unsent reports whether a call that failed has certainly had no effect: the
// service was not reached, or its answer says that it did nothing. Any other failed
// call may have had its effect.
func Unsent(err error) bool {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code < 500 || s.Code == http.StatusServiceUnavailable
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// BroadQuery returns a query that finds the facts of a group whatever they are
// about: most indexes of Graphiti hold the group's id beside the text. For the
// others it adds frequent words.
func BroadQuery(group string) string {
	return group + " user assistant person name called named likes prefers uses works lives wants needs says said about project agent system team"
}

// Unlisted reports whether a search finds something in a group that lists nothing,
// as with an older MCP server on FalkorDB. Call it before you take a group for empty.
func (m *Memory) Unlisted(ctx context.Context, group string) (bool, error) {
	facts, err := m.Search(ctx, []string{group}, BroadQuery(group), 1)
	return len(facts) > 0, err
}

// UnlistedError says that the backend does not list the messages of a group that it
// has.
type UnlistedError struct{ Group string }

// Error implements error.
func (e *UnlistedError) Error() string {
	return "the memory lists nothing of it, and a search finds something there"
}

func (e *UnlistedError) remedy() string {
	return "see what it knows with graphiti-proxy memory search --group " + e.Group +
		"; to list messages run a Graphiti MCP server that lists them, or Graphiti on Neo4j; memory forget --group " + e.Group + " deletes all of the group"
}

// RemainsError says that a deleted group, or a part of it, is not gone: the service
// still shows something of it.
type RemainsError struct {
	Group    string
	Episodes int // how many are listed
	Facts    int // how many a search finds

	// Unreachable says that the service cannot delete what it shows: it answers
	// "not found". Graphiti does so on FalkorDB: it shows the graph that is named
	// after the group, and deletes in its default one.
	Unreachable bool

	// Part says that not all of the group was to be deleted.
	Part bool
}

// Error holds no text of what remains.
func (e *RemainsError) Error() string {
	return fmt.Sprintf("the memory answered that it was deleted, and still shows %d episodes and %d facts", e.Episodes, e.Facts)
}

// OrNil returns e, or nil if nothing remains.
func (e *RemainsError) OrNil() error {
	if e.Episodes+e.Facts == 0 {
		return nil
	}
	return e
}

// remedy says what to do about it.
func (e *RemainsError) remedy() string {
	switch {
	case e.Unreachable && e.Part:
		return "this Graphiti cannot delete single messages of the group, as on FalkorDB, where its delete calls look into another graph: " +
			"delete all of the group with graphiti-proxy memory forget --group " + e.Group + ", or use Graphiti's MCP server of version 1.1.2 or newer, which can"
	case e.Unreachable:
		return "this Graphiti cannot delete the group, as on FalkorDB, where its delete calls look into another graph: delete all of the group with redis-cli GRAPH.DELETE " +
			e.Group + " on FalkorDB, and use Graphiti's MCP server of version 1.1.2 or newer, or Neo4j, to delete from here"
	}
	return "look at Graphiti's log for why it does not delete the group " + e.Group
}
