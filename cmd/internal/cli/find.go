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

// FindProxy finds the proxy that owns the data directory, or the one that answers at
// the address. The error is ErrNoProxy where there is none.
func FindProxy(ctx context.Context, o ClientOptions) (*Client, error) {
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

// FindProxyToShow finds the proxy whose status is shown: the owner of the data
// directory. If the directory is gone, or memory is off and it was never used, it is the
// proxy whose configuration names the directory.
func FindProxyToShow(ctx context.Context, o ClientOptions) (*Client, error) {
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

// ForwardsTo returns an error unless the proxy that is meant forwards requests. It needs
// no token. A proxy that owns another data directory is not meant.
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

// DirInUse returns an error which says that another process has the data directory and
// cannot be asked for what a command wants, and why the command does not use its files
// meanwhile.
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

func (c *Client) at(address string) *Client {
	o := c.o
	o.Listen = address
	return NewClient(o)
}

// addresses are where the owner's admin side may listen: where the
// configuration says, and where the owner says itself.
func (c *Client) addresses() (list []string) {
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

// proven asks for nothing but the proof.
func (c *Client) proven(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/healthz", nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// nameless is a client that gives no token away, and asks for no proof.
func (c *Client) nameless() *Client {
	o := c.o
	o.Token, o.open = "", true
	return NewClient(o)
}

// who is the instance of the proxy that answers. It is asked without the token,
// which is for nobody else than the proxy that is meant.
func (c *Client) who(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	resp, err := c.nameless().send(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return resp.Header.Get(admin.InstanceHeader), nil
}
