package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

const (
	// maxMCPList is the maximum number of episodes in a listing. Servers with
	// get_episodes(group_ids, max_episodes) return any episodes of a group, not the last
	// ones, so all have to be listed.
	maxMCPList = 20_000

	// maxMCPAnswer bounds an answer, in bytes.
	maxMCPAnswer = 64 << 20
)

// Client is a client for Graphiti's MCP server (getzep/graphiti, mcp_server). The server
// accepts messages before it has stored them. It processes each group separately, and
// continues after a failed message.
type Client struct {
	session  *session
	previous *lru.Cache[string, []string] // UUIDs of the last episodes listed, by group and session
}

// New returns a client. It does not connect. The endpoint may leave out the path /mcp.
func New(o remote.Options) (*Client, error) {
	s, err := newSession(o)
	if err != nil {
		return nil, err
	}
	previous, err := lru.New[string, []string](maxPrevious)
	return &Client{session: s, previous: previous}, err
}

// Memory returns the client in all roles of a memory.
func (m *Client) Memory() *graphiti.Memory {
	return &graphiti.Memory{Searcher: m, Writer: m, Forgetter: m, Connection: m, Arrivals: m}
}

// The tools, and the names that older servers have for them.
var (
	toolSearchFacts = toolNames{"search_memory_facts", "search_facts"}
	toolAdd         = toolNames{"add_memory", "add_episode"}
	toolEpisodes    = toolNames{"get_episodes"}
	toolClear       = toolNames{"clear_graph"}
	toolStatus      = toolNames{"get_status"}
)

// Search implements graphiti.Searcher. It does not search summaries of entities: Graphiti
// derives them from all facts, including outdated ones, and does not mark the valid ones.
func (m *Client) Search(ctx context.Context, groups []string, query string, max int) (facts []graphiti.Fact, err error) {
	for _, g := range groups {
		found, err := m.SearchDated(ctx, g, query, max-len(facts), graphiti.Dates{})
		if facts = append(facts, found...); err != nil || len(facts) >= max {
			return facts, err
		}
	}
	return facts, nil
}

// SearchDated is Search in one group for facts of some dates. Older servers cannot select them.
func (m *Client) SearchDated(ctx context.Context, group, query string, max int, d graphiti.Dates) ([]graphiti.Fact, error) {
	args := map[string]any{"query": query, "max_facts": max, "group_id": group, "group_ids": []string{group}}
	for name, t := range map[string]time.Time{"valid_at_after": d.ValidAfter, "valid_at_before": d.ValidBefore, "invalid_at_after": d.InvalidAfter} {
		if !t.IsZero() {
			args[name] = t.UTC().Format(time.RFC3339Nano)
		}
	}
	var answer struct{ Facts *[]remote.FactJSON }
	err := m.tool(ctx, toolSearchFacts, args, &answer)
	if err == nil && answer.Facts == nil {
		err = remote.ErrNotGraphiti
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return factsIn(group, *answer.Facts, max), nil
}

// factsIn returns the first facts of a list that are not of another group.
func factsIn(group string, list []remote.FactJSON, max int) (facts []graphiti.Fact) {
	for _, f := range list {
		if (f.Group == "" || f.Group == group) && len(facts) < max && strings.TrimSpace(f.Fact) != "" {
			facts = append(facts, f.In(group))
		}
	}
	return facts
}

// keepKnown drops the arguments that a tool does not take: servers refuse them.
func keepKnown(args map[string]any, takes map[string]bool) map[string]any {
	out := make(map[string]any, len(args)+1)
	for k, v := range args {
		if takes[k] {
			out[k] = v
		}
	}
	return out
}

// instructions direct the server's model to what is worth a fact. Entity types to exclude are
// settings of the server, which refuses unknown ones, so the text names the kinds instead.
const instructions = "Extract facts that the person (user) states about themselves, their work and their decisions, and answers that hold a result. " +
	"Extract nothing from acknowledgements, thanks and requests for the current task. File paths, and ids of runs and calls, are entities only if the person names them; the assistant is none."

const (
	// mostPrevious is the number of earlier episodes that the server's model reads with a message:
	// those of its conversation, for pronouns. By default it reads ten of the group, at twice the price.
	mostPrevious = 2

	// maxPrevious is the most conversations with known episodes.
	maxPrevious = 1024
)

// sessionOf returns the key of a message's conversation in a group, or "" without one.
func sessionOf(group, source string) string {
	if session := gjson.Get(source, "session").Str; session != "" {
		return group + " " + session
	}
	return ""
}

// Write implements graphiti.Writer: a call for each message, in order.
func (m *Client) Write(ctx context.Context, group string, messages []graphiti.Row) error {
	set, err := m.session.tools(ctx)
	if err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	name, takes, err := set.find(toolAdd)
	if err != nil {
		return fmt.Errorf("send messages: %w", err)
	}
	now := time.Now()
	for i, msg := range messages {
		if msg.Said.After(now) {
			msg.Said = now
		}
		previous, ok := m.previous.Get(sessionOf(group, msg.Source))
		if !ok {
			previous = []string{}
		}
		err := m.session.call(ctx, name, keepKnown(map[string]any{
			"previous_episode_uuids": previous,
			"name":                   msg.Name, "group_id": group, "source": "message", "source_description": msg.Source,
			"episode_body":                   msg.Speaker + "(" + string(msg.Role) + "): " + msg.Text, // same form as in the REST service
			"custom_extraction_instructions": instructions,
			"reference_time":                 msg.Said.UTC().Format(time.RFC3339Nano),
		}, takes), nil)
		if err != nil && i > 0 {
			return fmt.Errorf("send messages: %v, after %d messages", err, i) //nolint:errorlint // a caller must not take all for unsent
		}
		if err != nil {
			return fmt.Errorf("send messages: %w", err)
		}
	}
	return nil
}

func (m *Client) Episodes(ctx context.Context, group string, n int) ([]graphiti.Row, error) {
	list, err := m.episodes(ctx, group, n)
	if err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	return list[max(0, len(list)-n):], nil
}

// episodes lists at least the last n episodes, oldest first.
func (m *Client) episodes(ctx context.Context, group string, n int) (out []graphiti.Row, err error) {
	set, err := m.session.tools(ctx)
	if err != nil {
		return nil, err
	}
	name, takes, err := set.find(toolEpisodes)
	if err != nil {
		return nil, err
	}
	ordered := takes["last_n"]
	if !ordered {
		n = maxMCPList
	}
	var raw []byte
	args := keepKnown(map[string]any{"group_ids": []string{group}, "group_id": group, "last_n": n, "max_episodes": n}, takes)
	if err := m.session.call(ctx, name, args, &raw); err != nil {
		return nil, err
	}
	list, err := episodesIn(raw)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b remote.EpisodeJSON) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	last := make(map[string][]string)
	for _, e := range list {
		if e.ValidAt.IsZero() {
			e.ValidAt = e.CreatedAt
		}
		e.GroupID = group
		out = append(out, e.Bounded())
		if of := sessionOf(group, e.SourceDescription); of != "" {
			last[of] = append(last[of], e.UUID)
		}
	}
	for of, uuids := range last {
		m.previous.Add(of, uuids[max(0, len(uuids)-mostPrevious):])
	}
	if !ordered && len(out) >= n { // the missing ones may be the last
		return nil, fmt.Errorf("%w: %d episodes or more", graphiti.ErrTooLarge, n)
	}
	return out, nil
}

// all lists the episodes of a group. It fails if there may be more.
func (m *Client) all(ctx context.Context, group string) ([]graphiti.Row, error) {
	list, err := m.episodes(ctx, group, maxMCPList)
	if err == nil && len(list) >= maxMCPList {
		err = fmt.Errorf("%w: %d episodes or more", graphiti.ErrTooLarge, maxMCPList)
	}
	return list, err
}

func (m *Client) Export(ctx context.Context, group string, f func(graphiti.Row) error) error {
	list, err := m.all(ctx, group)
	if err != nil {
		return fmt.Errorf("export group: %w", err)
	}
	for _, e := range list {
		if err := f(e); err != nil {
			return fmt.Errorf("export group: %w", err)
		}
	}
	return nil
}

// Health implements graphiti.Connection: with /health or, if there is none, with the
// server's own tool.
func (m *Client) Health(ctx context.Context) error {
	err := m.session.health(ctx)
	var status *graphiti.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		err = m.CheckDatabase(ctx)
	}
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	return nil
}

// CheckDatabase asks the server's own tool, which asks its database and no model.
func (m *Client) CheckDatabase(ctx context.Context) error {
	var answer struct{ Status, Message string }
	err := m.tool(ctx, toolStatus, nil, &answer)
	if err == nil && answer.Status != "ok" {
		err = errors.New("the server reports an unhealthy state")
	}
	return err
}

func (m *Client) tool(ctx context.Context, t toolNames, args map[string]any, out any) error {
	set, err := m.session.tools(ctx)
	if err != nil {
		return err
	}
	name, takes, err := set.find(t)
	if err != nil {
		return err
	}
	return m.session.call(ctx, name, keepKnown(args, takes), out)
}

// Apart implements graphiti.Writer.
func (m *Client) Apart() bool { return true }

func (m *Client) Close() error { return m.session.close() }

// Check tests, in this order, the server's health, its tools, its status, and a search. It calls report
// after each test.
func (m *Client) Check(ctx context.Context, report func(remote.Check)) {
	if !remote.Reach(ctx, report, "health", m.Health, "start Graphiti's MCP server, or correct memory.endpoint (now "+m.session.shown+")",
		"correct memory.endpoint (now "+m.session.shown+"), or, if this is Graphiti's REST service, set memory.backend to graphiti") {
		return
	}
	remote.Run(ctx, report, "tools", func(ctx context.Context) error {
		set, err := m.session.tools(ctx)
		for _, t := range []toolNames{toolAdd, toolSearchFacts, toolEpisodes} {
			if err == nil {
				_, _, err = set.find(t)
			}
		}
		return err
	}, "use Graphiti's MCP server (getzep/graphiti, mcp_server) over streamable HTTP")
	remote.Run(ctx, report, "get_status", m.CheckDatabase, "check the server's log: its database must be reachable")
	remote.Run(ctx, report, "search", func(ctx context.Context) error { return graphiti.TrySearch(ctx, m, "graphiti_proxy_check", "test") }, "check the server's log: its database and its embedding model must be reachable")
}
