package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// FindProxy returns the proxy that owns the data directory, or the proxy at the address.
// The error is ErrNoProxy without one.
func FindProxy(ctx context.Context, o ClientOptions) (*AdminClient, error) {
	c := NewClient(o)
	if o.ByAddress {
		_, err := c.who(ctx)
		return c, err
	}
	id := datadir.Instance(o.DataDir)
	var others []string
	var stranger error
	for _, address := range c.addresses() {
		at := c.at(address)
		who, err := at.who(ctx)
		if err == nil && id != "" && who == id {
			if err = at.proven(ctx); err == nil {
				return at, nil
			}
		}
		switch {
		case errors.Is(err, ErrStranger):
			stranger = err
		case err == nil || !errors.Is(err, ErrNoProxy):
			others = append(others, address)
		}
	}
	if stranger != nil {
		return nil, fmt.Errorf("%w for data_dir %s: %w", ErrNoProxy, o.DataDir, stranger)
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("%w for data_dir %s; the proxy on %s owns another: set data_dir to that one, or name it with --set admin.listen alone",
			ErrNoProxy, o.DataDir, strings.Join(others, " and "))
	}
	return nil, c.silent()
}

// FindProxyToShow returns the proxy for a status: the owner of the data directory. If the
// directory is gone, or if memory is off and the directory was never used, it returns the
// proxy with that directory in its configuration.
func FindProxyToShow(ctx context.Context, o ClientOptions) (*AdminClient, error) {
	c, err := FindProxy(ctx, o)
	if !errors.Is(err, ErrNoProxy) {
		return c, err
	}
	for _, address := range NewClient(o).addresses() {
		at := NewClient(o).at(address)
		if s, asked := Ask(ctx, at.nameless(), service.Status, service.StatusRequest{}); asked == nil && s.DataDir == o.DataDir {
			return at.nameless(), nil
		}
	}
	return nil, err
}

// ForwardsTo returns an error unless the intended proxy forwards requests. It needs no
// token. A proxy with another data directory does not count.
func ForwardsTo(ctx context.Context, o ClientOptions) error {
	c, err := FindProxy(ctx, o)
	if errors.Is(err, ErrNoProxy) {
		c = NewClient(o)
		if who, asked := c.who(ctx); asked != nil || who != admin.NoInstance && datadir.Instance(o.DataDir) != "" {
			return err
		}
		err = nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.nameless().send(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&struct{}{}) != nil {
		return c.notOurs()
	}
	return nil
}

// DirInUse returns the error of a command if another process has the data directory and
// cannot answer it. The error explains the reason for not using the files meanwhile.
func DirInUse(o ClientOptions, found error) error {
	h := datadir.LockHolder(o.DataDir)
	if h.Command {
		return fmt.Errorf("another command (process %d) uses %s; wait until it ends", h.PID, o.DataDir)
	}
	who := "a proxy"
	if h.PID > 0 {
		who = fmt.Sprintf("a proxy (process %d)", h.PID)
	}
	return fmt.Errorf("%s runs on %s, and its admin side cannot be found; name its admin.listen: %w", who, o.DataDir, found)
}

func (c *AdminClient) at(address string) *AdminClient {
	o := c.o
	o.Listen = address
	return NewClient(o)
}

// addresses returns the possible addresses of the owner's admin side: from the
// configuration, and from the lock file of the owner.
func (c *AdminClient) addresses() (list []string) {
	if _, port, err := net.SplitHostPort(c.o.Listen); err == nil && port != "0" {
		list = append(list, c.o.Listen)
	}
	if hint := datadir.LockHolder(c.o.DataDir).Admin; hint != "" && !slices.Contains(list, hint) {
		if _, _, err := net.SplitHostPort(hint); err == nil {
			list = append(list, hint)
		}
	}
	return list
}

// proven makes one call, only for its proof.
func (c *AdminClient) proven(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/healthz", nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// nameless returns a client that sends no token and requires no proof.
func (c *AdminClient) nameless() *AdminClient {
	o := c.o
	o.Token, o.open = "", true
	return NewClient(o)
}

// who returns the instance of the proxy that answers. It sends no token, which is for the
// intended proxy only.
func (c *AdminClient) who(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	resp, err := c.nameless().send(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return resp.Header.Get(admin.InstanceHeader), nil
}
