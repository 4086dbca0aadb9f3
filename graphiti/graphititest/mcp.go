package graphititest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Age selects a version of Graphiti's MCP server.
type Age int

// The ages. Today is version 1.1.2 on FalkorDB, with recorded tools and answers: a tool
// reads the graph of one group. Earlier is a version of early 2026 in which the tools for
// single messages take no group. Old is a version of 2025 with other names of tools and a
// slash at the end of its path.
const (
	NoMCP Age = iota
	Today
	Earlier
	Old
)

// Tool returns the Call of an MCP tool, for faults and counts.
func Tool(name string) Call { return Call("tool " + name) }

// mcpTools lists the tools of each version with their arguments: the required ones, a bar,
// and the optional ones.
var mcpTools = map[Age]map[string]string{
	Today: {
		"add_memory": "name episode_body | group_id source source_description uuid reference_time excluded_entity_types custom_extraction_instructions " +
			"previous_episode_uuids update_communities saga saga_previous_episode_uuid",
		"search_memory_facts":  "query | group_ids max_facts center_node_uuid edge_types valid_at_after valid_at_before invalid_at_after invalid_at_before",
		"search_nodes":         "query | group_ids max_nodes entity_types center_node_uuid",
		"get_episodes":         "| group_ids max_episodes",
		"get_entity_edge":      "uuid | group_id",
		"get_episode_entities": "episode_uuids | group_id",
		"delete_episode":       "uuid | group_id",
		"delete_entity_edge":   "uuid | group_id",
		"clear_graph":          "| group_ids",
		"add_triplet":          "source_node_name edge_name fact target_node_name | group_id source_node_uuid target_node_uuid",
		"build_communities":    "| group_ids",
		"summarize_saga":       "saga_name | group_id",
		"get_status":           "|",
	},
	Earlier: {
		"add_memory":          "name episode_body | group_id source source_description uuid reference_time",
		"search_memory_facts": "query | group_ids max_facts center_node_uuid",
		"search_nodes":        "query | group_ids max_nodes entity_types",
		"get_episodes":        "| group_ids max_episodes",
		"clear_graph":         "| group_ids",
		"delete_episode":      "uuid |",
		"delete_entity_edge":  "uuid |",

		"get_episode_entities": "episode_uuids |",
		"get_status":           "|",
	},
	Old: {
		"add_episode":         "name episode_body | group_id source source_description uuid",
		"search_facts":        "query | group_id max_facts",
		"search_memory_nodes": "query | group_id max_nodes",
		"get_episodes":        "| group_id last_n",
		"clear_graph":         "|",
		"delete_episode":      "uuid |",
		"delete_entity_edge":  "uuid |",
		"get_status":          "|",
	},
}

// mcpService is an MCP server between two restarts.
type mcpService struct {
	http.Handler
	server *mcp.Server
}

// end ends the open sessions.
func (m mcpService) end() {
	if m.server == nil {
		return
	}
	for session := range m.server.Sessions() {
		_ = session.Close()
	}
}

// newMCP returns an MCP server without sessions.
func (s *Graphiti) newMCP(age Age) mcpService {
	server := mcp.NewServer(&mcp.Implementation{Name: "Graphiti Agent Memory", Version: "1"}, nil)
	for name, takes := range mcpTools[age] {
		required, optional, _ := strings.Cut(takes, "|")
		properties := map[string]any{}
		for _, p := range strings.Fields(required + " " + optional) {
			properties[p] = map[string]any{}
		}
		schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if r := strings.Fields(required); len(r) > 0 {
			schema["required"] = r
		}
		server.AddTool(&mcp.Tool{Name: name, InputSchema: schema}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.useTool(name, age, r.Params.Arguments), nil
		})
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: age == Old})
	return mcpService{h, server}
}

// serveMCP counts the call of a tool, and serves it or applies its fault.
func (s *Graphiti) serveMCP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.mcp
	s.mu.Unlock()
	if h.server == nil {
		http.NotFound(w, r)
		return
	}
	s.received("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		body := r.Body.(interface{ Bytes() []byte }).Bytes() //nolint:forcetypeassert // received makes it
		var call struct {
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(body, &call) != nil || call.Method != "tools/call" {
			h.ServeHTTP(w, r)
			return
		}
		s.received(Tool(call.Params.Name), h.ServeHTTP)(w, r)
	})(w, r)
}

// defaultGroup is the group of calls to today's server that name none.
const defaultGroup = "main"

// useTool runs a tool. It ignores unknown arguments, like today's server.
func (s *Graphiti) useTool(name string, age Age, raw json.RawMessage) *mcp.CallToolResult {
	var args toolArgs
	if err := json.Unmarshal(raw, &args); err != nil {
		return toolError("Error executing tool " + name + ": " + err.Error())
	}
	groups := args.Groups
	switch {
	case args.Group != "":
		groups = []string{args.Group}
	case age == Today && len(groups) == 0:
		groups = []string{defaultGroup}
	}
	switch name {
	case "add_memory", "add_episode":
		return s.toolAdd(age, groups, &args)
	case "search_memory_facts", "search_facts":
		if broken := s.brokenModel(); broken != "" {
			return toolAnswer(age, map[string]any{"error": "Error searching facts: " + broken})
		}
		facts := s.find(query{groups: groups, text: args.Query, max: args.MaxFacts, named: true})
		if len(facts) == 0 {
			return toolAnswer(age, map[string]any{"message": "No relevant facts found", "facts": facts})
		}
		return toolAnswer(age, map[string]any{"message": "Facts retrieved successfully", "facts": facts})
	case "get_episodes":
		return s.toolEpisodes(age, groups, &args)
	case "clear_graph":
		s.mu.Lock()
		defer s.mu.Unlock()
		if age == Old {
			s.episodes, s.edges = make(map[string][]Episode), make(map[string][]*edge)
		}
		for _, g := range groups {
			s.clearLocked(g)
		}
		return toolAnswer(age, map[string]any{"message": "Graph data cleared successfully for group IDs: " + strings.Join(groups, ", ")})
	case "delete_episode":
		if !s.removeEpisode(args.UUID, groups...) {
			return toolAnswer(age, map[string]any{"error": "Error deleting episode: node " + args.UUID + " not found"})
		}
		if age != Old && s.o.Deletes != InWords { // older servers do not delete its facts
			s.removeEdges(func(f *edge) bool { return f.withdraw(args.UUID) })
		}
		return toolAnswer(age, map[string]any{"message": "Episode with UUID " + args.UUID + " deleted successfully"})
	case "delete_entity_edge":
		if !s.removeEdges(func(f *edge) bool { return f.uuid == args.UUID && (age != Today || f.group == groups[0]) }) {
			return toolAnswer(age, map[string]any{"error": "Error deleting entity edge: edge " + args.UUID + " not found"})
		}
		return toolAnswer(age, map[string]any{"message": "Entity edge with UUID " + args.UUID + " deleted successfully"})
	case "get_entity_edge":
		return s.toolEdge(age, groups, args.UUID)
	case "get_episode_entities":
		return s.toolProvenance(age, groups, args.Episodes)
	case "get_status":
		return toolAnswer(age, map[string]any{"status": "ok", "message": "Graphiti MCP server is running and connected to falkordb database"})
	}
	return toolError("Unknown tool: " + name)
}

// toolEdge returns a fact from the graph of a group.
func (s *Graphiti) toolEdge(age Age, groups []string, uuid string) *mcp.CallToolResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.edgeLocked(uuid)
	if f == nil || !slices.Contains(groups, f.group) {
		return toolAnswer(age, map[string]any{"error": "Error getting entity edge: edge " + uuid + " not found"})
	}
	r := f.result(s.o.OldFacts)
	r["group_id"] = f.group
	return toolAnswer(age, r)
}

// toolProvenance returns the facts that were read from episodes.
func (s *Graphiti) toolProvenance(age Age, groups, episodes []string) *mcp.CallToolResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	edges := []map[string]any{}
	for _, g := range groups {
		for _, e := range s.episodes[g] {
			if !slices.Contains(episodes, e.UUID) {
				continue
			}
			for _, uuid := range e.Edges {
				if f := s.edgeLocked(uuid); f != nil {
					r := f.result(true) // without episodes
					delete(r, "expired_at")
					edges = append(edges, r)
				}
			}
		}
	}
	return toolAnswer(age, map[string]any{"message": "Retrieved provenance", "nodes": []any{}, "edges": edges})
}

// toolArgs contains the arguments of all tools.
type toolArgs struct {
	Name, Query, Source, UUID string
	Body                      string   `json:"episode_body"`
	Group                     string   `json:"group_id"`
	Groups                    []string `json:"group_ids"`
	Described                 string   `json:"source_description"`
	Time                      string   `json:"reference_time"`
	MaxFacts                  int      `json:"max_facts"`
	LastN                     int      `json:"last_n"`
	MaxEpisodes               int      `json:"max_episodes"`
	Episodes                  []string `json:"episode_uuids"`
}

// toolAdd queues a message for the worker of its group.
func (s *Graphiti) toolAdd(age Age, groups []string, args *toolArgs) *mcp.CallToolResult {
	group, at := "", time.Now()
	if len(groups) > 0 {
		group = groups[0]
	}
	if args.Time != "" {
		t, err := time.Parse(time.RFC3339Nano, args.Time)
		if err != nil {
			return toolAnswer(age, map[string]any{"error": "Invalid reference_time: " + err.Error()})
		}
		at = t
	}
	s.mu.Lock()
	s.accepted++
	w := s.workers[group]
	if w == nil {
		w = s.startWorker()
		w.survives = true
		s.workers[group] = w
	}
	s.mu.Unlock()
	w.put([]job{{group: group, uuid: args.UUID, name: args.Name, content: args.Body, source: args.Described, validAt: at}})
	return toolAnswer(age, map[string]any{"message": "Episode '" + args.Name + "' queued for processing in group '" + group + "'"})
}

// toolEpisodes lists episodes. Newer servers select those with the highest UUIDs, regardless
// of time, and return them newest first.
func (s *Graphiti) toolEpisodes(age Age, groups []string, args *toolArgs) *mcp.CallToolResult {
	list := s.in(groups)
	if age == Old {
		list = list[max(0, len(list)-args.LastN):]
	} else {
		slices.SortFunc(list, func(a, b Episode) int { return strings.Compare(b.UUID, a.UUID) })
		list = list[:min(len(list), max(0, args.MaxEpisodes))]
		slices.SortFunc(list, func(a, b Episode) int { return b.CreatedAt.Compare(a.CreatedAt) })
	}
	out := []any{}
	for _, e := range list {
		out = append(out, map[string]any{"uuid": e.UUID, "name": e.Name, "content": e.Content, "created_at": stamp(e.CreatedAt, "+00:00"), "source": "message", "source_description": e.SourceDescription, "group_id": e.Group})
	}
	switch {
	case len(out) == 0:
		return toolAnswer(age, map[string]any{"message": "No episodes found", "episodes": out})
	case age == Old:
		return toolAnswer(age, out)
	}
	return toolAnswer(age, map[string]any{"message": "Episodes retrieved successfully", "episodes": out})
}

func toolError(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// toolAnswer returns an answer in the format of the server's library: as text, and in newer
// versions also as a value.
func toolAnswer(age Age, v any) *mcp.CallToolResult {
	b, _ := json.MarshalIndent(v, "", "  ") // plain values: cannot fail
	r := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(b)}}}
	if age != Old {
		r.StructuredContent = map[string]any{"result": v}
	}
	return r
}
