package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Bounds on the parts of an answer, in bytes unless noted.
const (
	MaxFactBytes   = 8 << 10 // of one fact's text
	maxNameBytes   = 512     // of ids and names
	maxSourceBytes = 4 << 10 // of source descriptions
	MaxDetailBytes = 8 << 10 // of an error's text; FastAPI quotes the request in it
)

// ErrNotGraphiti is the error for an answer from another service.
var ErrNotGraphiti = errors.New("the answer is not a Graphiti response")

// FactJSON is a fact as a service sends it.
type FactJSON struct {
	UUID      string `json:"uuid"`
	Fact      string `json:"fact"`
	ValidAt   Time   `json:"valid_at"`
	InvalidAt Time   `json:"invalid_at"`
	CreatedAt Time   `json:"created_at"`
	ExpiredAt Time   `json:"expired_at"`
	Group     string `json:"group_id"` // over MCP

	Episodes []string `json:"episodes"` // sources of the fact, the first one in front
}

// Time reads a time as Python writes it: with a zone, without one (UTC), or null.
type Time struct{ time.Time }

func (t *Time) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a time is not a string: %w", err)
	}
	if s == nil || *s == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02"} {
		if p, err := time.Parse(layout, *s); err == nil {
			t.Time = p
			return nil
		}
	}
	return errors.New("a time cannot be read")
}

// In returns the fact of a group; group is "" if it is unknown.
func (f *FactJSON) In(group string) graphiti.Fact {
	return graphiti.Fact{
		Episodes: f.Episodes,
		UUID:     graphiti.Truncate(f.UUID, maxNameBytes), Text: graphiti.Truncate(f.Fact, MaxFactBytes), Group: group,
		CreatedAt: f.CreatedAt.Time, ValidAt: f.ValidAt.Time, InvalidAt: f.InvalidAt.Time, ExpiredAt: f.ExpiredAt.Time,
	}
}

// EpisodeJSON is an episode as a service sends it.
type EpisodeJSON struct {
	UUID              string   `json:"uuid"`
	Name              string   `json:"name"`
	GroupID           string   `json:"group_id"`
	Content           string   `json:"content"`
	SourceDescription string   `json:"source_description"`
	CreatedAt         Time     `json:"created_at"`
	ValidAt           Time     `json:"valid_at"`
	EntityEdges       []string `json:"entity_edges"` // facts that Graphiti read from it, new or not
}

// Row returns the entry of the episode, whose text may have both sides of a turn.
func (e *EpisodeJSON) Row() graphiti.Row {
	r := graphiti.Row{Key: e.UUID, Name: e.Name, Group: e.GroupID, Source: e.SourceDescription, Said: e.ValidAt.Time, Facts: e.EntityEdges}
	r.Speaker, r.Role, r.Text = spoken(e.Content)
	return r
}

// Bounded is Row with ids and names cut to their bounds.
func (e *EpisodeJSON) Bounded() graphiti.Row {
	r := e.Row()
	r.Source = graphiti.Truncate(r.Source, maxSourceBytes)
	for _, s := range []*string{&r.Key, &r.Name, &r.Group} {
		*s = graphiti.Truncate(*s, maxNameBytes)
	}
	return r
}

// spoken parses Graphiti's stored text of a message.
func spoken(content string) (speaker string, role graphiti.RoleType, text string) {
	for at := 0; ; {
		i := strings.Index(content[at:], "): ")
		if i < 0 {
			return "", "", content
		}
		head := content[:at+i]
		at += i + len("): ")
		for _, r := range []graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant, graphiti.RoleSystem} {
			if name, ok := strings.CutSuffix(head, "("+string(r)); ok && !strings.Contains(name, "\n") {
				return name, r, content[at:]
			}
		}
	}
}

// retryAfter reads both forms of the header. It compares a date with the Date of the
// answer, which is by the same clock.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s > 0 {
		return time.Duration(min(s, 24*3600)) * time.Second
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(until.Sub(now), 0)
}
