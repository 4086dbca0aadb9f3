package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// ClientOptions describes the intended proxy.
type ClientOptions struct {
	Listen string // admin.listen, or off
	Token  string // empty without one
	Cert   string // file of the trusted certificate; empty without TLS

	// DataDir is the data directory of the proxy. With ByAddress the client ignores it, and
	// calls the proxy at Listen.
	DataDir   string
	ByAddress bool

	open bool // any proxy may answer, without a proof
}

// AdminClient calls the admin side of one proxy.
type AdminClient struct{ o ClientOptions }

// NewClient returns a client of the proxy at o.Listen.
func NewClient(o ClientOptions) *AdminClient { return &AdminClient{o} }

// Address returns the address of the proxy's admin side.
func (c *AdminClient) Address() string { return Reachable(c.o.Listen) }

// Listens returns the configured address of the proxy's admin side.
func (c *AdminClient) Listens() string { return c.o.Listen }

// ErrNoProxy is the error if the intended proxy does not answer.
var ErrNoProxy = errors.New("no proxy answers")

const (
	maxAdminAnswer = 64 << 20 // bytes of an answer, or of a line of an answer
	callTimeout    = 30 * time.Second
	whoTimeout     = 5 * time.Second
)

// ErrStranger is the error if the program that answers does not prove that it is the
// intended proxy. It receives neither the token nor any memory.
var ErrStranger = errors.New("does not prove that it is this data_dir's proxy")

// send makes one call. It returns an error for any status except 200.
func (c *AdminClient) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	if c.o.Listen == "off" {
		return nil, c.silent()
	}
	// No HTTP proxy in between: it would see the token and the memory.
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	scheme := "http://"
	var trust *tls.Config
	if c.o.Cert != "" {
		var err error
		if trust, err = TrustCertificate(c.o.Cert); err != nil {
			return nil, err
		}
		scheme = "https://"
	}
	// Each connection must be proven before use.
	connect := func(ctx context.Context, network, address string) (net.Conn, error) {
		return c.connect(ctx, network, address, trust)
	}
	transport.DialContext, transport.DialTLSContext = connect, connect
	req, err := http.NewRequestWithContext(ctx, method, scheme+Reachable(c.o.Listen)+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the admin side: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if !c.o.ByAddress { // another proxy may have taken the address meanwhile
		if id := datadir.Instance(c.o.DataDir); id != "" {
			req.Header.Set(admin.InstanceHeader, id)
		}
	}
	if c.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	resp, err := (&http.Client{Transport: transport, CheckRedirect: graphiti.NoRedirect}).Do(req)
	switch {
	case errors.Is(err, ErrStranger):
		return nil, c.stranger()
	case err != nil:
		return nil, c.silent()
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized && c.o.open {
		return nil, fmt.Errorf("%s wants a token, and does not prove that it is this data_dir's proxy: without memory, a proxy has no data_dir to prove it with; use its /readyz, or TLS on its admin side (tls.listeners)", c.o.Listen)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, errors.New("the admin side rejects the token; set admin.token to the proxy's")
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
	if c.o.Listen == "off" {
		return fmt.Errorf("%w: admin.listen is off; set it to an address and restart the proxy", ErrNoProxy)
	}
	return fmt.Errorf("%w on %s; start one with graphiti-proxy serve, or set admin.listen to the running proxy's address", ErrNoProxy, c.o.Listen)
}

func (c *AdminClient) stranger() error {
	if datadir.Secret(c.o.DataDir) == nil {
		return fmt.Errorf("%s %w, so the token is not sent: %s contains no secret to check; run this command with the proxy's data_dir and settings, or use TLS on its admin side (tls.listeners)", c.o.Listen, ErrStranger, c.o.DataDir)
	}
	return fmt.Errorf("%s %w, so the token is not sent: it does not have the secret in %s; check which program listens there, and set admin.listen and data_dir to the proxy's", c.o.Listen, ErrStranger, c.o.DataDir)
}

func (c *AdminClient) notOurs() error {
	return fmt.Errorf("%s is not graphiti-proxy, or runs another version; set admin.listen to the address of the proxy's admin side", c.o.Listen)
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
