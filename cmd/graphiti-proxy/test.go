package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newTestCommand() *cobra.Command {
	c := described("test")
	c.RunE = running(tryUpstreams)
	cli.JSONFlag(c)
	return c
}

func tryUpstreams(c *cobra.Command, cfg *config.Config, proxy *cli.AdminClient) error {
	s, err := cli.Ask(c.Context(), proxy, service.Status, service.StatusRequest{Fresh: true})
	if err != nil {
		return err
	}
	// The key goes to the address in these settings, like the keys of clients, and not to
	// another one in the status.
	if cli.Reachable(s.Listen) != cli.Reachable(cfg.Listen) {
		return fmt.Errorf("the proxy listens on %s, and listen is %s here: no key is sent; name its address with --set listen=%s", terminal.Printable(s.Listen), cfg.Listen, terminal.Printable(s.Listen))
	}
	transport := &http.Transport{Proxy: nil}
	defer transport.CloseIdleConnections()
	o := cli.TrialOptions{Base: "http://" + cli.Reachable(cfg.Listen), Client: &http.Client{Transport: transport, CheckRedirect: graphiti.NoRedirect}, Key: cli.Variable(c)}
	if s.TLS || cfg.TLSFor("client") {
		if cfg.TLS.Cert == "" {
			return errors.New("the proxy speaks TLS, and tls.cert is not set here: add its certificate and key, --set tls.cert=FILE --set tls.key=FILE")
		}
		o.Base = "https://" + cli.Reachable(cfg.Listen)
		if transport.TLSClientConfig, err = cli.TrustCertificate(cfg.TLS.Cert); err != nil {
			return err
		}
	}
	all := cli.RunTrial(c.Context(), o)
	err = cli.Output(c, all, func(w io.Writer) { cli.PrintTrial(w, all) })
	tried, failed := 0, 0
	for _, r := range all {
		if !r.NoKey {
			tried++
		}
		if r.Error != "" {
			failed++
		}
	}
	switch {
	case tried == 0:
		err = errors.Join(err, errors.New("no upstream has a key: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY"))
	case failed > 0:
		err = errors.Join(err, fmt.Errorf("%d of %d upstreams failed", failed, tried))
	}
	return err
}
