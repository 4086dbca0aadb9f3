package graphititest

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"
)

// edge is a fact that was extracted from a message. The deletion of the message over REST
// does not delete it.
type edge struct {
	uuid     string
	group    string
	fact     string
	created  time.Time
	validAt  time.Time
	episodes []string // UUIDs of the episodes with the fact, its source first
}

// readLocked extracts the fact of a message: each has exactly one.
func (s *Graphiti) readLocked(e *Episode) {
	text := said(e.Content)
	if s.o.Reads != nil {
		text = s.o.Reads(text)
	}
	if s.o.Merge {
		for _, known := range s.edges[e.Group] {
			if known.fact == text {
				known.episodes = append(known.episodes, e.UUID)
				e.Edges = []string{known.uuid}
				return
			}
		}
	}
	read := &edge{uuid: "edge-" + e.UUID, group: e.Group, fact: text, created: time.Now().UTC(), validAt: e.ValidAt, episodes: []string{e.UUID}}
	s.edges[e.Group] = append(s.edges[e.Group], read)
	e.Edges = []string{read.uuid}
}

// withdraw removes an episode of the fact, and reports whether it was the last.
func (f *edge) withdraw(episode string) bool {
	f.episodes = slices.DeleteFunc(f.episodes, func(uuid string) bool { return uuid == episode })
	return len(f.episodes) == 0
}

// result returns the fact in the form of an answer. Services from before August 2026 (old)
// do not name its episodes.
func (f *edge) result(old bool) map[string]any {
	r := map[string]any{
		"uuid": f.uuid, "name": "SAID", "fact": f.fact,
		"valid_at": stamp(f.validAt, "+00:00"), "invalid_at": nil, "created_at": stamp(f.created, "+00:00"), "expired_at": nil,
		"source_node_uuid": "source-" + f.uuid, "target_node_uuid": "target-" + f.uuid,
	}
	if !old {
		r["episodes"] = f.episodes
	}
	return r
}

// search returns the facts for a query.
func (s *Graphiti) search(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	q, problems := readQuery(b)
	if len(problems) > 0 {
		unprocessable(w, problems)
		return
	}
	for _, g := range q.groups {
		if !acceptedID.MatchString(g) {
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
			return
		}
	}
	if broken := s.brokenModel(); broken != "" {
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"facts": s.find(q)})
}

// getMemory searches one group with messages as the query.
func (s *Graphiti) getMemory(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	q, problems := readConversation(b)
	if len(problems) > 0 {
		unprocessable(w, problems)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"facts": s.find(q)})
}

// find returns the facts that share words with the query: first those with most of its
// words, and of these the newest.
func (s *Graphiti) find(q query) []map[string]any {
	type hit struct {
		*edge
		shared int
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var hits []hit
	asked := words(q.text)
	groups := q.groups
	if groups == nil {
		groups = slices.Sorted(maps.Keys(s.edges))
	}
	for _, group := range groups {
		for _, f := range s.edges[group] {
			h := hit{edge: f}
			if slices.Contains(strings.Fields(q.text), group) { // the real index contains the group too
				h.shared++
			}
			for word := range words(f.fact) {
				if asked[word] {
					h.shared++
				}
			}
			if h.shared > 0 {
				hits = append(hits, h)
			}
		}
	}
	sort.SliceStable(hits, func(i, j int) bool {
		if hits[i].shared != hits[j].shared {
			return hits[i].shared > hits[j].shared
		}
		return hits[i].validAt.After(hits[j].validAt)
	})
	facts := []map[string]any{}
	for _, h := range hits[:max(0, min(q.max, len(hits)))] {
		f := h.result(s.o.OldFacts)
		if q.named {
			f["group_id"] = h.group
		}
		facts = append(facts, f)
	}
	return facts
}

func (s *Graphiti) edgeLocked(uuid string) *edge {
	for _, list := range s.edges {
		for _, f := range list {
			if f.uuid == uuid {
				return f
			}
		}
	}
	return nil
}

// showEdge returns a fact.
func (s *Graphiti) showEdge(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.edgeLocked(r.PathValue("uuid"))
	if f == nil || s.o.Deletes == Elsewhere {
		writeJSON(w, http.StatusNotFound, map[string]any{"detail": "edge " + r.PathValue("uuid") + " not found"})
		return
	}
	writeJSON(w, http.StatusOK, f.result(s.o.OldFacts))
}

// dropEdge removes a fact.
func (s *Graphiti) dropEdge(w http.ResponseWriter, r *http.Request) {
	if !s.removeEdges(func(f *edge) bool { return f.uuid == r.PathValue("uuid") }) {
		writeJSON(w, http.StatusNotFound, map[string]any{"detail": "edge " + r.PathValue("uuid") + " not found"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"message": "Entity Edge deleted", "success": true})
}

func (s *Graphiti) removeEdges(meant func(*edge) bool) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Deletes >= Elsewhere {
		return s.o.Deletes == InWords
	}
	for group, list := range s.edges {
		n := len(list)
		s.edges[group] = slices.DeleteFunc(list, meant)
		found = found || len(s.edges[group]) < n
	}
	return found
}

// dropEpisode removes a message, but not the facts that were extracted from it, like the real
// service.
func (s *Graphiti) dropEpisode(w http.ResponseWriter, r *http.Request) {
	if !s.removeEpisode(r.PathValue("uuid")) {
		writeJSON(w, http.StatusNotFound, map[string]any{"detail": "node " + r.PathValue("uuid") + " not found"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"message": "Episode deleted", "success": true})
}

// removeEpisode removes a message from the groups, or from any group if there are none.
func (s *Graphiti) removeEpisode(uuid string, groups ...string) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Deletes >= Elsewhere {
		return s.o.Deletes == InWords
	}
	for group, list := range s.episodes {
		if len(groups) > 0 && !slices.Contains(groups, group) {
			continue
		}
		n := len(list)
		s.episodes[group] = slices.DeleteFunc(list, func(e Episode) bool { return e.UUID == uuid })
		found = found || len(s.episodes[group]) < n
	}
	return found
}
