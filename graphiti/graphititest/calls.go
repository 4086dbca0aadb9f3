package graphititest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Episode is a message that a worker has stored.
type Episode struct {
	UUID              string
	Name              string
	Group             string
	Content           string // "role(role_type): content"
	SourceDescription string
	CreatedAt         time.Time
	ValidAt           time.Time
	Edges             []string // UUIDs of the facts that were extracted from it, new or known
}

func (s *Graphiti) healthcheck(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "healthy"})
}

func (s *Graphiti) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}

// messages accepts all valid messages, even if the worker is dead.
func (s *Graphiti) messages(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body) // in RAM already
	jobs, problems := readMessages(b)
	if len(problems) > 0 {
		unprocessable(w, problems)
		return
	}
	s.mu.Lock()
	s.accepted += len(jobs)
	s.worker.put(jobs)
	s.mu.Unlock()
	accepted(w)
}

func accepted(w http.ResponseWriter) {
	writeJSON(w, http.StatusAccepted, map[string]any{"message": "Messages added to processing queue", "success": true})
}

// keep stores a job as an episode.
func (s *Graphiti) keep(j job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept++
	e := Episode{
		UUID: newUUID(), Name: j.name, Group: j.group, Content: j.content,
		SourceDescription: j.source, CreatedAt: time.Now().UTC(), ValidAt: j.validAt,
	}
	s.readLocked(&e)
	s.episodes[j.group] = append(s.episodes[j.group], e)
}

// listEpisodes returns the last episodes of a group, oldest first, by their valid_at. It
// omits episodes of the future.
func (s *Graphiti) listEpisodes(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("last_n"))
	if err != nil || n < 0 {
		unprocessable(w, []problem{{"int_parsing", []any{"query", "last_n"}, "Input should be a valid integer", nil}})
		return
	}
	group, now := r.PathValue("group_id"), time.Now()
	var seen []Episode
	for _, e := range s.Episodes(group) {
		if !e.ValidAt.After(now) {
			seen = append(seen, e)
		}
	}
	sort.SliceStable(seen, func(i, j int) bool { return seen[i].ValidAt.Before(seen[j].ValidAt) })
	out := []map[string]any{}
	for _, e := range seen[max(0, len(seen)-n):] {
		out = append(out, map[string]any{
			"uuid": e.UUID, "name": e.Name, "group_id": e.Group, "labels": []string{}, "created_at": stamp(e.CreatedAt, "Z"),
			"source": "message", "source_description": e.SourceDescription, "content": e.Content,
			"valid_at": stamp(e.ValidAt, "Z"), "entity_edges": e.Edges, "episode_metadata": nil,
		})
	}
	writeJSON(w, http.StatusOK, out)
}

// in returns the episodes of the groups, or of all groups if groups is nil.
func (s *Graphiti) in(groups []string) []Episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Episode
	if groups == nil {
		for _, episodes := range s.episodes {
			out = append(out, episodes...)
		}
	}
	for _, g := range groups {
		out = append(out, s.episodes[g]...)
	}
	return out
}

// forget removes the episodes and facts of a group. Messages in the queue are stored later
// nevertheless, as in the real service.
func (s *Graphiti) forget(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.clearLocked(r.PathValue("group_id"))
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"message": "Group deleted", "success": true})
}

func (s *Graphiti) clearLocked(group string) {
	if s.o.Deletes == Deleted {
		delete(s.episodes, group)
		delete(s.edges, group)
	}
}

// Erase removes everything without a call, and makes deletions work from then on.
func (s *Graphiti) Erase() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.episodes)
	clear(s.edges)
	s.o.Deletes = Deleted
}

// said returns the text of the first speaker in an episode's content.
func said(content string) string {
	if _, text, ok := strings.Cut(content, "): "); ok {
		content = text
	}
	content, _, _ = strings.Cut(content, "\n(assistant): ")
	return content
}

// words returns the words of a text with more than two bytes, in lower case.
func words(s string) map[string]bool {
	out := make(map[string]bool)
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if len(w) > 2 {
			out[w] = true
		}
	}
	return out
}

// stamp formats a time like Python: with microseconds, or without a fraction.
func stamp(t time.Time, zone string) string {
	layout := "2006-01-02T15:04:05"
	if t.Nanosecond() >= 1000 {
		layout += ".000000"
	}
	return t.UTC().Format(layout) + zone
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // on error, the client is gone
}
