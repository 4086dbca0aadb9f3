package mcp

import (
	"context"
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// toolFact looks a fact up by its id. Some servers lack this tool.
var toolFact = toolNames{"get_entity_edge"}

// Facts looks facts up by their ids, with one call for each.
func (m *Client) Facts(ctx context.Context, group string, uuids []string) (facts []graphiti.Fact, ok bool, err error) {
	set, err := m.session.tools(ctx)
	if err != nil {
		return nil, true, fmt.Errorf("look up facts: %w", err)
	}
	name, takes, missing := set.find(toolFact)
	if ok = missing == nil; !ok {
		return nil, ok, nil
	}
	facts, err = remote.LookUp(ctx, group, uuids, func(ctx context.Context, uuid string) (f remote.FactJSON, err error) {
		err = m.session.call(ctx, name, keepKnown(map[string]any{"uuid": uuid, "group_id": group}, takes), &f)
		return f, err
	})
	if err != nil {
		return facts, true, fmt.Errorf("look up facts: %w", err)
	}
	return facts, true, nil
}
