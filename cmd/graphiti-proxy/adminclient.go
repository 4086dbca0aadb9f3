package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/certificate"
	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// errNoProxy says that nothing listens where the admin side should be.
var errNoProxy = errors.New("no proxy answers")

// maxAdminAnswer bounds an answer of the admin side.
const maxAdminAnswer = 64 << 20

// adminTimeout bounds one call.
const adminTimeout = 30 * time.Second

// ask makes one call to the admin side of the running proxy; in may be nil.
func ask(ctx context.Context, cfg *config.Config, method, path string, in, out any) error {
	return askFor(ctx, adminTimeout, cfg, method, path, in, out)
}

// askFor is ask with a time of its own.
func askFor(ctx context.Context, timeout time.Duration, cfg *config.Config, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ask the admin side: %w", err)
	}
	resp, err := send(ctx, cfg, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err != nil {
		return fmt.Errorf("read the admin side's answer: %w", err)
	}
	if json.Unmarshal(answer, out) != nil {
		return notOurs(cfg)
	}
	return nil
}

// stream makes one call and gives each line of the answer to f.
func stream(ctx context.Context, cfg *config.Config, path string, f func(line []byte) error) error {
	resp, err := send(ctx, cfg, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAdminAnswer)
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the admin side's answer: %w", err)
	}
	return nil
}

// send makes one call, and makes an error of what is no success.
func send(ctx context.Context, cfg *config.Config, method, path string, body []byte) (*http.Response, error) {
	if cfg.Admin.Listen == "off" {
		return nil, errors.New("admin.listen is off, so the proxy cannot be asked")
	}
	// No proxy between: it would get the token, and what is remembered.
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	scheme := "http://"
	if cfg.TLSFor("admin") {
		trust, err := certificate.Trusting(cfg.TLS.Cert)
		if err != nil {
			return nil, err
		}
		scheme, transport.TLSClientConfig = "https://", trust
	}
	client := &http.Client{Transport: transport}
	req, err := http.NewRequestWithContext(ctx, method, scheme+reachable(cfg.Admin.Listen)+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the admin side: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	onBehalf(cfg, req)
	if cfg.Admin.Token != "" {
		req.Header.Set("Authorization", "Bearer "+cfg.Admin.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, noProxyAt(cfg)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, errors.New("the admin side refuses the token; set admin.token to the proxy's")
	}
	var refusal struct {
		Error string `json:"error"`
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && json.Unmarshal(answer, &refusal) == nil && refusal.Error != "" {
		return nil, errors.New(refusal.Error)
	}
	return nil, notOurs(cfg)
}

func noProxyAt(cfg *config.Config) error {
	if cfg.Admin.Listen == "off" {
		return fmt.Errorf("%w: admin.listen is off, so that it cannot be asked", errNoProxy)
	}
	return fmt.Errorf("%w on %s; start one with graphiti-proxy serve, or name its admin.listen", errNoProxy, cfg.Admin.Listen)
}

// reachable is an address at which a listener is reached from this machine: one
// that listens on all is no place to connect to.
func reachable(listen string) string {
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

func notOurs(cfg *config.Config) error {
	return fmt.Errorf("what answers on %s is not graphiti-proxy, or another version of it", cfg.Admin.Listen)
}
