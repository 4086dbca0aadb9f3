package mcp

import (
	"context"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// toolFact looks a fact up by its id. Some servers lack this tool.
var toolFact = toolNames{"get_entity_edge"}

// FactsOf returns the facts of an episode. Servers without a tool for them are searched for its
// text.
func (m *Client) FactsOf(ctx context.Context, group string, episode *graphiti.Row) ([]graphiti.Fact, error) {
	set, err := m.session.tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the facts of an episode: %w", err)
	}
	if _, takes, missing := set.find(toolProvenance); missing != nil || !takes["group_id"] {
		facts, err := m.factsNear(ctx, group, episode)
		return slices.DeleteFunc(facts, func(f graphiti.Fact) bool { return !slices.Contains(f.Episodes, episode.Key) }), err
	}
	var answer struct{ Edges []remote.FactJSON }
	if err := m.tool(ctx, toolProvenance, map[string]any{"episode_uuids": []string{episode.Key}, "group_id": group}, &answer); err != nil {
		return nil, fmt.Errorf("read the facts of an episode: %w", err)
	}
	var uuids []string
	for i := range answer.Edges {
		uuids = append(uuids, answer.Edges[i].UUID)
	}
	if name, takes, missing := set.find(toolFact); missing == nil { // with their episodes
		facts, err := remote.LookUp(ctx, group, uuids, func(ctx context.Context, uuid string) (f remote.FactJSON, err error) {
			err = m.session.call(ctx, name, keepKnown(map[string]any{"uuid": uuid, "group_id": group}, takes), &f)
			return f, err
		})
		if err != nil {
			return facts, fmt.Errorf("look up facts: %w", err)
		}
		return facts, nil
	}
	var facts []graphiti.Fact
	for i := range answer.Edges {
		facts = append(facts, answer.Edges[i].In(group))
	}
	return facts, nil
}

// factsNear returns the facts that a search for the text of an episode finds: an old server has no other way
// to its facts.
func (m *Client) factsNear(ctx context.Context, group string, episode *graphiti.Row) ([]graphiti.Fact, error) {
	const most = 100
	return m.SearchDated(ctx, group, graphiti.Truncate(episode.Text, remote.MaxQueryBytes), most, graphiti.Dates{})
}
