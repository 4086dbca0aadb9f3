package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// ClientOptions describes the intended proxy.
type ClientOptions struct {
	Listen string // admin.listen, or off
	Token  string // empty without one
	Cert   string // file of the trusted certificate; empty without TLS

	// DataDir is the data directory of the proxy, with the socket for commands. With ByAddress
	// the client calls the proxy at Listen instead.
	DataDir   string
	ByAddress bool
}

// AdminClient calls the admin side of one proxy.
type AdminClient struct{ o ClientOptions }

// NewClient returns a client of the described proxy.
func NewClient(o ClientOptions) *AdminClient { return &AdminClient{o} }

func (c *AdminClient) String() string {
	if c.o.ByAddress {
		return "the proxy on " + Reachable(c.o.Listen)
	}
	return "the proxy of " + c.o.DataDir
}

// ErrNoProxy is the error if the intended proxy does not answer.
var ErrNoProxy = errors.New("no proxy answers")

const (
	maxAdminAnswer = 64 << 20 // bytes of an answer, or of a line of an answer
	callTimeout    = 30 * time.Second
	whoTimeout     = 5 * time.Second
)

// send makes one call. It returns an error for any status except 200.
func (c *AdminClient) send(ctx context.Context, method, path string, body []byte) (_ *http.Response, err error) {
	if c.o.Listen == "off" {
		return nil, c.silent()
	}
	// No HTTP proxy in between: it would see the token and the memory.
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	base := "http://" + Reachable(c.o.Listen)
	switch {
	case !c.o.ByAddress:
		base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(c.o.DataDir, admin.SocketFile))
		}
	case c.o.Cert != "":
		base = "https://" + Reachable(c.o.Listen)
		if transport.TLSClientConfig, err = TrustCertificate(c.o.Cert); err != nil {
			return nil, err
		}
	case c.o.Token != "":
		return nil, fmt.Errorf("%s may be another program's address, so the token is sent there only over TLS (tls.listeners, tls.cert); on the proxy's machine, set data_dir to the proxy's instead", c.o.Listen)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the admin side: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: graphiti.NoRedirect}).Do(req)
	if err != nil {
		return nil, c.silent()
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, errors.New("the admin side wants admin.token; set it to the proxy's, and use TLS (tls.listeners)")
	}
	var refusal struct {
		Error   string `json:"error"`
		Invalid bool   `json:"invalid"`
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || json.Unmarshal(answer, &refusal) != nil || refusal.Error == "" {
		return nil, c.notOurs()
	}
	if err = errors.New(refusal.Error); refusal.Invalid {
		err = Usage(err)
	}
	return nil, err
}

func (c *AdminClient) silent() error {
	switch {
	case c.o.Listen == "off":
		return fmt.Errorf("%w: admin.listen is off; set it to an address and restart the proxy", ErrNoProxy)
	case c.o.ByAddress:
		return fmt.Errorf("%w on %s; start one with graphiti-proxy serve, or set admin.listen to the running proxy's address", ErrNoProxy, c.o.Listen)
	}
	return fmt.Errorf("%w for data_dir %s; start one with graphiti-proxy serve, or set data_dir to the running proxy's", ErrNoProxy, c.o.DataDir)
}

func (c *AdminClient) notOurs() error {
	return fmt.Errorf("%s is not graphiti-proxy, or another version; set admin.listen to the address of the proxy's admin side", c)
}

// Reachable returns an address of a listener for this machine: a listener on all addresses
// is reachable on loopback.
func Reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch ip := net.ParseIP(host); {
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
