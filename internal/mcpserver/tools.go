package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	fewResults  = 10 // results of a call without a limit, and texts to confirm at once
	mostResults = 100
)

// limited returns the number of results for a call.
func limited(n int) int {
	if n <= 0 {
		return fewResults
	}
	return min(n, mostResults)
}

func (s *server) addTools(srv *mcp.Server) {
	no := false
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	adds := &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no, IdempotentHint: true}
	deletes := &mcp.ToolAnnotations{OpenWorldHint: &no, IdempotentHint: true}
	add(srv, mcp.Tool{Name: "search_memory_facts", Annotations: reads, Description: "Search what was said in earlier conversations of this project, and facts about the user."}, s.searchFacts)
	add(srv, mcp.Tool{Name: "search_nodes", Annotations: reads, Description: "Find names, such as people, systems and files, that earlier conversations mention."}, s.searchNodes)
	add(srv, mcp.Tool{Name: "get_episodes", Annotations: reads, Description: "Read the last messages of earlier conversations of this project, newest first. If the answer has a time earlier, call again with it as before."}, s.episodes)
	add(srv, mcp.Tool{Name: "add_memory", Annotations: adds, Description: "Note a text for later conversations of this project. It counts as yours, not as the user's words, until the user confirms it. Conversations are stored without this tool."}, s.addMemory)
	add(srv, mcp.Tool{Name: "confirm_memory", Annotations: adds, Description: "Ask the user to confirm pending texts, which then apply in all conversations. Without ids, list the pending texts."}, s.confirm)
	add(srv, mcp.Tool{Name: "delete_episode", Annotations: deletes, Description: "Delete one message or fact permanently. Use it only if the user asks for it."}, s.deleteEpisode)
	add(srv, mcp.Tool{Name: "get_status", Annotations: reads, Description: "Report whether the memory works."}, s.status)
}

type searchFactsInput struct {
	Query string `json:"query" jsonschema:"words or a question to search for"`
	Max   int    `json:"max_facts,omitempty" jsonschema:"most facts, default 10"`
}

type fact struct {
	UUID    string `json:"uuid"`
	Fact    string `json:"fact"`
	Group   string `json:"group_id"`
	Scope   string `json:"scope"`
	Since   string `json:"valid_at,omitempty"`
	Omitted string `json:"omitted,omitempty"` // reason for which no block would show the fact
}

type factList struct {
	Message string `json:"message"`
	Facts   []fact `json:"facts"`
}

func (s *server) searchFacts(ctx context.Context, req *mcp.CallToolRequest, in *searchFactsInput) (out factList, err error) {
	memory, err := s.memory(req)
	if err != nil {
		return out, err
	}
	found, err := call(ctx, s, service.Search, service.SearchRequest{Selector: memory, Query: in.Query})
	out = factList{"no facts found", []fact{}}
	for _, f := range found.Facts[:min(limited(in.Max), len(found.Facts))] {
		out.Message, out.Facts = "facts found", append(out.Facts, fact{f.ID, f.Text, f.Group, f.Scope, f.Since, f.Omitted()})
	}
	return out, err
}

type searchNodesInput struct {
	Query string `json:"query" jsonschema:"names to search for"`
	Max   int    `json:"max_nodes,omitempty" jsonschema:"most nodes, default 10"`
}

type node struct {
	UUID    string `json:"uuid"`
	Name    string `json:"name"`
	Summary string `json:"summary"` // best search result with the name
	Count   int    `json:"count"`   // of search results with the name
}

type nodeList struct {
	Message string `json:"message"`
	Nodes   []node `json:"nodes"`
}

func (s *server) searchNodes(ctx context.Context, req *mcp.CallToolRequest, in *searchNodesInput) (out nodeList, err error) {
	memory, err := s.memory(req)
	if err != nil {
		return out, err
	}
	found, err := call(ctx, s, service.Search, service.SearchRequest{Selector: memory, Query: in.Query})
	out = nodeList{"no nodes found", []node{}}
	asked := words.Of(in.Query, mostWords)
	for _, f := range found.Facts {
		for _, name := range namesIn(f.Text, asked) {
			i := slices.IndexFunc(out.Nodes, func(n node) bool { return strings.EqualFold(n.Name, name) })
			if i < 0 {
				i, out.Message = len(out.Nodes), "nodes found"
				out.Nodes = append(out.Nodes, node{graphiti.MessageID("node " + strings.ToLower(name)), name, f.Text, 0})
			}
			out.Nodes[i].Count++
		}
	}
	out.Nodes = out.Nodes[:min(limited(in.Max), len(out.Nodes))]
	return out, err
}

type episodesInput struct {
	Max  int `json:"max_episodes,omitempty" jsonschema:"most episodes, default 10"`
	Last int `json:"last_n,omitempty" jsonschema:"another name of max_episodes"`

	Before string `json:"before,omitempty" jsonschema:"only episodes before a time such as 2026-11-21T09:00:00Z"`
}

type episode struct {
	UUID    string `json:"uuid"`
	Content string `json:"content"`
	Role    string `json:"role"`
	Group   string `json:"group_id"`
	At      string `json:"valid_at"`
}

type episodeList struct {
	Message  string    `json:"message"`
	Episodes []episode `json:"episodes"` // newest first
	Earlier  string    `json:"earlier,omitempty"`
}

// mostText bounds the characters of an answer: clients cut longer ones, or refuse them.
const mostText = 40_000

func (s *server) episodes(ctx context.Context, req *mcp.CallToolRequest, in *episodesInput) (out episodeList, err error) {
	memory, err := s.memory(req)
	if err != nil {
		return out, err
	}
	for n := limited(max(in.Max, in.Last)); ; n = max(1, len(out.Episodes)) {
		shown, err := call(ctx, s, service.Show, service.ShowRequest{Selector: memory, Last: n, Before: in.Before})
		out = episodeList{"no episodes found", []episode{}, shown.Earlier}
		left := mostText
		for _, m := range slices.Backward(shown.Messages) {
			text := []rune(m.Text)
			if left -= len(text); left < 0 && len(out.Episodes) > 0 {
				break
			}
			if m.Text = string(text[:min(len(text), mostText)]); left < 0 {
				m.Text += " … (cut)"
			}
			out.Message, out.Episodes = "episodes found", append(out.Episodes, episode{m.ID, m.Text, m.Role, m.Group, m.Time})
		}
		if err != nil || len(out.Episodes) == len(shown.Messages) || len(out.Episodes) >= n {
			return out, err
		}
	}
}

type addInput struct {
	Name string `json:"name,omitempty" jsonschema:"a short title"`
	Body string `json:"episode_body" jsonschema:"the text to store"`
}

type added struct {
	Message string `json:"message"`
	UUID    string `json:"uuid,omitempty"` // of the stored message
	Pending string `json:"pending_id"`
}

func (s *server) addMemory(ctx context.Context, req *mcp.CallToolRequest, in *addInput) (out added, err error) {
	memory, err := s.memory(req)
	if err != nil {
		return out, err
	}
	text := strings.TrimSpace(in.Body)
	if name := strings.TrimSpace(in.Name); name != "" && text != "" && !strings.Contains(text, name) {
		text = name + ": " + text
	}
	client := "mcp"
	if info := req.ClientInfo(); info != nil && info.Name != "" {
		client = info.Name
	}
	kept, err := call(ctx, s, service.Suggest, service.SuggestRequest{Selector: memory, Text: text, Client: client})
	out = added{UUID: kept.ID, Pending: kept.Line}
	switch {
	case kept.State != card.Pending:
		out.Message = "the user has decided about this text before: it is " + string(kept.State)
	case kept.ID != "":
		out.Message = "stored as your note in this project; it applies nowhere else until the user confirms it"
	default:
		out.Message = "the project is unknown, so it applies nowhere until the user confirms it"
	}
	return out, err
}

type confirmInput struct {
	IDs []string `json:"ids,omitempty" jsonschema:"pending_id of each text"`
}

type line struct {
	ID    string         `json:"pending_id"`
	Text  string         `json:"text"`
	State card.LineState `json:"state"`
}

type lineList struct {
	Message string `json:"message"`
	Lines   []line `json:"texts"`
}

func linesOf(message string, lines []service.Standing) lineList {
	out := lineList{message, []line{}}
	for _, l := range lines[:min(mostResults, len(lines))] {
		out.Lines = append(out.Lines, line{l.ID, l.Text, l.State})
	}
	return out
}

// confirm lets the person decide: the answer comes from their client, not from the model.
func (s *server) confirm(ctx context.Context, req *mcp.CallToolRequest, in *confirmInput) (out lineList, err error) {
	waiting, err := call(ctx, s, service.Pending, service.PendingRequest{})
	if err != nil {
		return out, err
	}
	if len(in.IDs) == 0 {
		return linesOf("pending texts", waiting.Lines), nil
	}
	if len(in.IDs) > fewResults {
		return out, fmt.Errorf("ids: name at most %d texts at once", fewResults)
	}
	message := "Use this in all conversations from now on?"
	for _, id := range in.IDs {
		i := slices.IndexFunc(waiting.Lines, func(l service.Standing) bool { return l.ID == id })
		if i < 0 {
			return out, fmt.Errorf("ids: no text with the id %q is pending", id)
		}
		message += "\n- " + waiting.Lines[i].Text
	}
	if can := req.ClientCapabilities(); can == nil || can.Elicitation == nil {
		return out, fmt.Errorf("this client cannot ask the user: they confirm with graphiti-proxy memory pending --accept %s, or on the page Pending", strings.Join(in.IDs, ","))
	}
	answer, ok := req.Params.InputResponses[answerName].(*mcp.ElicitResult)
	if !ok {
		return out, question{&mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}}
	}
	if answer.Action != "accept" {
		return out, errors.New("the user did not confirm")
	}
	settled, err := call(ctx, s, service.Settle, service.SettleRequest{Accept: in.IDs})
	return linesOf("confirmed", settled.Lines), err
}

type deleteInput struct {
	UUID  string `json:"uuid" jsonschema:"from get_episodes or search_memory_facts"`
	Group string `json:"group_id,omitempty" jsonschema:"its group, if several contain it"`
}

type deleted struct {
	Message string `json:"message"`
}

func (s *server) deleteEpisode(ctx context.Context, _ *mcp.CallToolRequest, in *deleteInput) (deleted, error) {
	if strings.TrimSpace(in.UUID) == "" {
		return deleted{}, errors.New("uuid: is empty")
	}
	f, err := call(ctx, s, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: in.UUID, Group: in.Group}})
	return deleted{cmp.Or(f.Remaining, "deleted")}, err
}

type status struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (s *server) status(ctx context.Context, _ *mcp.CallToolRequest, _ *struct{}) (status, error) {
	st, err := call(ctx, s, service.Health, struct{}{})
	if st.Why != "" {
		return status{"error", st.Why}, err
	}
	return status{"ok", "the memory is " + string(st.State)}, err
}
