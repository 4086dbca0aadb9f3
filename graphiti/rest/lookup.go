package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
)

// Facts looks facts up by their ids, with one call for each: the service cannot return
// several.
func (r *Client) Facts(ctx context.Context, group string, uuids []string) (facts []graphiti.Fact, ok bool, err error) {
	facts, err = remote.LookUp(ctx, group, uuids, func(ctx context.Context, uuid string) (f remote.FactJSON, err error) {
		err = r.call(ctx, http.MethodGet, "/entity-edge/"+url.PathEscape(uuid), nil, &f)
		return f, err
	})
	if err != nil {
		return facts, true, fmt.Errorf("look up facts: %w", err)
	}
	return facts, true, nil
}

// FactsOf returns the facts of a listed episode.
func (r *Client) FactsOf(ctx context.Context, group string, episode *graphiti.Row) ([]graphiti.Fact, error) {
	facts, _, err := r.Facts(ctx, group, episode.Facts)
	return facts, err
}
