package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// The tools for parts of a group. A server with toolProvenance (since June 2026) deletes
// the facts first read from an episode together with it; older servers do not.
var (
	toolDropEpisode = toolNames{"delete_episode"}
	toolDropFact    = toolNames{"delete_entity_edge"}
	toolProvenance  = toolNames{"get_episode_entities"}
)

// errClearsAll is returned instead of asking an older server to forget a group: it would
// delete all groups.
var errClearsAll = errors.New("this MCP server can only clear everything, not one group; use a newer one, or Graphiti's REST service")

// Forget implements graphiti.Forgetter.
func (m *Client) Forget(ctx context.Context, group string) error {
	set, err := m.session.tools(ctx)
	if err != nil {
		return fmt.Errorf("forget group: %w", err)
	}
	name, takes, err := set.find(toolClear)
	if err == nil && !takes["group_ids"] {
		err = errClearsAll
	}
	if err == nil {
		err = m.session.call(ctx, name, map[string]any{"group_ids": []string{group}}, nil)
	}
	if err == nil {
		err = remote.ProveEmpty(ctx, m, group)
	}
	if err != nil {
		return fmt.Errorf("forget group: %w", err)
	}
	return nil
}

// DropEpisode implements remote.Deleter. Without a group, the server reads its default
// group; older servers take no group.
func (m *Client) DropEpisode(ctx context.Context, group, uuid string) error {
	return m.tool(ctx, toolDropEpisode, map[string]any{"uuid": uuid, "group_id": group}, nil)
}

// ForgetEpisodes implements graphiti.Forgetter. Newer servers delete entities without other
// mentions, and have their model rewrite the summaries of the rest; if the model fails, they keep
// a summary and report success.
func (m *Client) ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Row) bool) (names []string, err error) {
	list, err := m.meant(ctx, group, meant)
	if err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	set, err := m.session.tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("forget episode: %w", err)
	}
	_, _, leaves := set.find(toolProvenance)
	return remote.ForgetPart(ctx, m, group, list, func(e *graphiti.Row) error {
		if leaves == nil {
			return nil
		}
		return m.forgetFacts(ctx, e)
	}, func(left *graphiti.RemainsError) error { return m.countLeft(ctx, list, meant, left) })
}

// meant lists the episodes of a group for which meant returns true.
func (m *Client) meant(ctx context.Context, group string, meant func(*graphiti.Row) bool) ([]graphiti.Row, error) {
	list, err := m.all(ctx, group)
	return slices.DeleteFunc(list, func(e graphiti.Row) bool { return !meant(&e) }), err
}

// countLeft counts the episodes that are still listed, and the facts that were first read from
// the deleted ones.
func (m *Client) countLeft(ctx context.Context, gone []graphiti.Row, meant func(*graphiti.Row) bool, left *graphiti.RemainsError) error {
	list, err := m.meant(ctx, left.Group, meant)
	left.Episodes = len(list)
	for i := range gone[:min(len(gone), remote.MaxSearched)] {
		facts, failed := m.readFrom(ctx, &gone[i])
		left.Facts, err = left.Facts+len(facts), errors.Join(err, failed)
	}
	return err
}

// forgetFacts deletes the facts that were first read from an episode.
func (m *Client) forgetFacts(ctx context.Context, e *graphiti.Row) error {
	facts, err := m.readFrom(ctx, e)
	for _, uuid := range facts {
		if err == nil {
			err = remote.Present(m.tool(ctx, toolDropFact, map[string]any{"uuid": uuid, "group_id": e.Group}, nil))
		}
	}
	return err
}

// readFrom returns the facts that were first read from an episode, as far as factsNear finds them.
func (m *Client) readFrom(ctx context.Context, e *graphiti.Row) (uuids []string, err error) {
	facts, err := m.factsNear(ctx, e.Group, e)
	for _, f := range facts {
		if len(f.Episodes) > 0 && f.Episodes[0] == e.Key {
			uuids = append(uuids, f.UUID)
		}
	}
	return uuids, err
}
