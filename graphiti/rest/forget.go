package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// Forget implements graphiti.Forgetter.
func (r *Client) Forget(ctx context.Context, group string) error {
	err := r.remove(ctx, "/group/", group)
	if err == nil {
		err = remote.ProveEmpty(ctx, r, group)
	}
	if err != nil {
		return fmt.Errorf("forget group: %w", err)
	}
	return nil
}

// DropEpisode implements remote.Deleter. The service takes no group.
func (r *Client) DropEpisode(ctx context.Context, _, uuid string) error {
	return r.drop(ctx, "/episode/", uuid)
}

func (r *Client) drop(ctx context.Context, path, uuid string) error {
	return r.call(ctx, http.MethodDelete, path+url.PathEscape(uuid), nil, nil)
}

// ForgetEpisodes implements graphiti.Forgetter. The service deletes an episode, but not the
// facts that it read from the episode (getzep/graphiti, delete_episodic_node), so they are
// deleted first.
func (r *Client) ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Row) bool) (names []string, err error) {
	list, err := r.meant(ctx, group, meant)
	if err != nil {
		return nil, err
	}
	rows, going := make([]graphiti.Row, len(list)), make(map[string]*remote.EpisodeJSON, len(list))
	for i := range list {
		rows[i], going[list[i].UUID] = list[i].Row(), &list[i]
	}
	facts := make(map[string]bool)
	return remote.ForgetPart(ctx, r, group, rows, func(e *graphiti.Row) error {
		for _, edge := range going[e.Key].EntityEdges {
			gone, err := r.forgetFact(ctx, edge, going[e.Key], going)
			if err != nil {
				return err
			}
			facts[edge] = facts[edge] || gone
		}
		return nil
	}, func(left *graphiti.RemainsError) error { return r.countLeft(ctx, list, facts, meant, left) })
}

// meant lists the episodes of a group for which meant returns true, with the beginning of
// their texts.
func (r *Client) meant(ctx context.Context, group string, meant func(*graphiti.Row) bool) (list []remote.EpisodeJSON, err error) {
	err = r.list(ctx, group, maxExport, maxRESTExport, func(e *remote.EpisodeJSON) error {
		if r := e.Row(); meant(&r) {
			list = append(list, remote.EpisodeJSON{UUID: e.UUID, Name: e.Name, CreatedAt: e.CreatedAt, EntityEdges: e.EntityEdges, Content: strings.Clone(graphiti.Truncate(e.Content, remote.MaxQueryBytes))})
		}
		return nil
	})
	return list, err
}

// countLeft counts the episodes that are still listed, and the deleted facts that a search
// for the episodes' texts still finds.
func (r *Client) countLeft(ctx context.Context, gone []remote.EpisodeJSON, facts map[string]bool, meant func(*graphiti.Row) bool, left *graphiti.RemainsError) error {
	list, err := r.meant(ctx, left.Group, meant)
	if err != nil {
		return err
	}
	left.Episodes = len(list)
	seen := make(map[string]bool)
	for i := range gone[:min(len(gone), remote.MaxSearched)] {
		found, err := r.Search(ctx, []string{left.Group}, gone[i].Content, remote.LookFacts)
		if err != nil {
			return err
		}
		for _, f := range found {
			if facts[f.UUID] && !seen[f.UUID] {
				seen[f.UUID] = true
				left.Facts++
			}
		}
	}
	return nil
}

// forgetFact deletes a fact that was first read from one of the deleted episodes, and
// reports whether it did: an earlier fact belongs to other episodes too. If the service
// does not return the episodes of a fact, its age decides: a fact is newer than its first
// episode.
func (r *Client) forgetFact(ctx context.Context, edge string, e *remote.EpisodeJSON, going map[string]*remote.EpisodeJSON) (gone bool, err error) {
	var fact struct {
		CreatedAt remote.Time `json:"created_at"`
		Episodes  []string    `json:"episodes"`
	}
	if err := r.call(ctx, http.MethodGet, "/entity-edge/"+url.PathEscape(edge), nil, &fact); err != nil {
		return false, remote.Present(err)
	}
	first := !fact.CreatedAt.Before(e.CreatedAt.Time)
	if len(fact.Episodes) > 0 {
		first = going[fact.Episodes[0]] != nil
	}
	if !first {
		return false, nil
	}
	return true, r.remove(ctx, "/entity-edge/", edge)
}

// remove deletes an item that may already be gone.
func (r *Client) remove(ctx context.Context, path, uuid string) error {
	return remote.Present(r.drop(ctx, path, uuid))
}
