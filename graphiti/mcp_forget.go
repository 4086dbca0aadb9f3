package graphiti

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// The tools for parts of a group. A server that has toolProvenance, since June
// 2026, deletes with an episode the facts that it has first read from it; older
// ones leave them.
var (
	toolDropEpisode = mcpTool{"delete_episode"}
	toolDropFact    = mcpTool{"delete_entity_edge"}
	toolProvenance  = mcpTool{"get_episode_entities"}
)

// ForgetEpisodes implements Memory.
func (m *MCP) ForgetEpisodes(ctx context.Context, group string, meant func(*Episode) bool) (names []string, err error) {
	list, most, err := m.episodes(ctx, group, maxMCPList)
	if err == nil && len(list) >= most {
		err = fmt.Errorf("%w: %d episodes or more", ErrTooLarge, most)
	}
	if err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	set, err := m.session.tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("forget episode: %w", err)
	}
	name, _, err := set.find(toolDropEpisode)
	if err != nil {
		return nil, fmt.Errorf("forget episode: %w", err)
	}
	_, _, leaves := set.find(toolProvenance)
	for i := range list {
		e := &list[i]
		if !meant(e) {
			continue
		}
		if leaves != nil {
			if err := m.forgetFacts(ctx, e); err != nil {
				return names, fmt.Errorf("forget fact: %w", err)
			}
		}
		if err := m.session.call(ctx, name, map[string]any{"uuid": e.UUID}, nil); there(err) != nil {
			return names, fmt.Errorf("forget episode: %w", err)
		}
		names = append(names, e.Name)
	}
	return names, nil
}

const (
	factsOfOne = 100  // facts that are looked at for one episode
	factQuery  = 2000 // bytes of the episode by which they are sought
)

// forgetFacts deletes the facts that were first read from an episode, as far as
// a search for its text finds them: an old server has no other way to tell.
func (m *MCP) forgetFacts(ctx context.Context, e *Episode) error {
	var going []string
	args := map[string]any{"query": cutBytes(e.Content, factQuery), "max_facts": factsOfOne}
	err := m.perGroups(ctx, toolSearchFacts, []string{e.Group}, args, func(_ string, call func(any) error) error {
		var answer struct {
			Facts []struct {
				UUID     string   `json:"uuid"`
				Episodes []string `json:"episodes"`
			}
		}
		if err := call(&answer); err != nil {
			return err
		}
		for _, f := range answer.Facts {
			if len(f.Episodes) > 0 && f.Episodes[0] == e.UUID {
				going = append(going, f.UUID)
			}
		}
		return nil
	})
	for _, uuid := range going {
		if err == nil {
			err = there(m.tool(ctx, toolDropFact, map[string]any{"uuid": uuid}, nil))
		}
	}
	return err
}

// there is nil where a tool says that something is not there.
func there(err error) error {
	var s *StatusError
	if errors.As(err, &s) && s.Code == http.StatusServiceUnavailable && strings.Contains(s.Detail, "not found") {
		return nil
	}
	return err
}
