package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// FindProxy returns the proxy that owns the data directory, or the proxy at the address.
// The error is ErrNoProxy without one.
func FindProxy(ctx context.Context, o ClientOptions) (*AdminClient, error) {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	c := NewClient(o)
	resp, err := c.send(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return nil, err
	}
	return c, resp.Body.Close()
}

// byAddress returns the options of a client without a token for a proxy that owns no data
// directory: its memory is off.
func byAddress(o ClientOptions) ClientOptions {
	o.ByAddress, o.Token = true, ""
	return o
}

// FindProxyToShow returns the proxy for a status: the owner of the data directory. If the
// directory is gone, or if memory is off and the directory was never used, it returns the
// proxy with that directory in its configuration.
func FindProxyToShow(ctx context.Context, o ClientOptions) (*AdminClient, error) {
	c, err := FindProxy(ctx, o)
	if !errors.Is(err, ErrNoProxy) {
		return c, err
	}
	c = NewClient(byAddress(o))
	if s, asked := Ask(ctx, c, service.Status, service.StatusRequest{}); asked == nil && s.DataDir == o.DataDir {
		return c, nil
	}
	return nil, err
}

// ForwardsTo returns an error unless the intended proxy forwards requests. It needs no
// token.
func ForwardsTo(ctx context.Context, o ClientOptions) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := NewClient(o)
	resp, err := c.send(ctx, http.MethodGet, "/readyz", nil)
	if errors.Is(err, ErrNoProxy) {
		c = NewClient(byAddress(o))
		resp, err = c.send(ctx, http.MethodGet, "/readyz", nil)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&struct{}{}) != nil {
		return c.notOurs()
	}
	return nil
}
