package graphiti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// ForgetEpisodes implements Memory. The service deletes an episode and leaves
// the facts that it has read from it (getzep/graphiti, delete_episodic_node), so
// that they are deleted before.
func (r *REST) ForgetEpisodes(ctx context.Context, group string, meant func(*Episode) bool) (names []string, err error) {
	var list []restEpisode
	read := func(body io.Reader) error {
		return decodeList(io.LimitReader(body, maxRESTExport), func(e *restEpisode) {
			if meant(e.episode()) {
				list = append(list, restEpisode{UUID: e.UUID, Name: e.Name, CreatedAt: e.CreatedAt, EntityEdges: e.EntityEdges})
			}
		})
	}
	if err := r.send(ctx, http.MethodGet, "/episodes/"+url.PathEscape(group)+"?last_n="+strconv.Itoa(maxExport), nil, read); err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	going := make(map[string]bool, len(list))
	for i := range list {
		going[list[i].UUID] = true
	}
	for i := range list {
		e := &list[i]
		for _, edge := range e.EntityEdges {
			if err := r.forgetFact(ctx, edge, e, going); err != nil {
				return names, fmt.Errorf("forget fact: %w", err)
			}
		}
		if err := r.remove(ctx, "/episode/", e.UUID); err != nil {
			return names, fmt.Errorf("forget episode: %w", err)
		}
		names = append(names, e.Name)
	}
	return names, nil
}

func (e *restEpisode) episode() *Episode {
	return &Episode{e.UUID, e.Name, e.GroupID, e.Content, e.SourceDescription, e.CreatedAt.Time, e.ValidAt.Time}
}

// forgetFact deletes a fact that was first read in an episode that goes: one
// that was there before belongs to others too. Where the service does not say
// which episodes a fact is from, its age tells: an episode is older than what is
// read from it.
func (r *REST) forgetFact(ctx context.Context, edge string, e *restEpisode, going map[string]bool) error {
	var fact struct {
		CreatedAt restTime `json:"created_at"`
		Episodes  []string `json:"episodes"`
	}
	if err := r.call(ctx, http.MethodGet, "/entity-edge/"+url.PathEscape(edge), nil, &fact); err != nil {
		return present(err)
	}
	first := !fact.CreatedAt.Before(e.CreatedAt.Time)
	if len(fact.Episodes) > 0 {
		first = going[fact.Episodes[0]]
	}
	if !first {
		return nil
	}
	return r.remove(ctx, "/entity-edge/", edge)
}

// remove deletes what may not be there.
func (r *REST) remove(ctx context.Context, path, uuid string) error {
	return present(r.call(ctx, http.MethodDelete, path+url.PathEscape(uuid), nil, nil))
}

// present is nil where an error says that something is not there.
func present(err error) error {
	var s *StatusError
	if errors.As(err, &s) && s.Code == http.StatusNotFound {
		return nil
	}
	return err
}
