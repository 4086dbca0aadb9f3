package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/datadir"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// whoTimeout bounds the question who answers.
const whoTimeout = 5 * time.Second

// byAddress reports whether a command line names a proxy by its address, and
// not by its data directory.
func byAddress(cfg *config.Config) bool {
	return cfg.Origin("admin.listen") == flagOrigin && cfg.Origin("data_dir") != flagOrigin
}

// flagOrigin is how the configuration calls what stands on the command line.
const flagOrigin = "flag"

// findOwner finds the proxy that a command is about: the one that owns its
// data_dir, or the one at an address that the command line names alone. The
// configuration that it returns has that one's address. The error is errNoProxy
// where there is none.
func findOwner(ctx context.Context, cfg *config.Config) (*config.Config, error) {
	if byAddress(cfg) {
		if _, err := whoAnswers(ctx, cfg); err != nil {
			return nil, err
		}
		return cfg, nil
	}
	id := datadir.Instance(cfg.DataDir)
	var strangers []string
	for _, address := range addresses(cfg) {
		at := *cfg
		at.Admin.Listen = address
		switch who, err := whoAnswers(ctx, &at); {
		case err == nil && id != "" && who == id:
			return &at, nil
		case err == nil || !errors.Is(err, errNoProxy):
			strangers = append(strangers, address)
		}
	}
	if len(strangers) > 0 {
		return nil, stranger{cfg.DataDir, strangers}
	}
	return nil, noProxyAt(cfg)
}

// addresses are where the owner's admin side may listen: where the
// configuration says, and where the owner says itself.
func addresses(cfg *config.Config) (list []string) {
	if _, port, err := net.SplitHostPort(cfg.Admin.Listen); err == nil && port != "0" {
		list = append(list, cfg.Admin.Listen)
	}
	if _, hint := datadir.Holder(cfg.DataDir); hint != "" && !slices.Contains(list, hint) {
		if _, _, err := net.SplitHostPort(hint); err == nil {
			list = append(list, hint)
		}
	}
	return list
}

// stranger is errNoProxy where others than the owner answer.
type stranger struct {
	dir       string
	addresses []string
}

func (s stranger) Error() string {
	return fmt.Sprintf("%v for data_dir %s; what answers on %s belongs to another: set data_dir to that one's, or name it with --set admin.listen alone",
		errNoProxy, s.dir, strings.Join(s.addresses, " and "))
}

// Is makes it errNoProxy.
func (stranger) Is(target error) bool { return target == errNoProxy }

// whoAnswers is the instance of the proxy at admin.listen, which is asked
// without the token: a stranger is not to have it.
func whoAnswers(ctx context.Context, cfg *config.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	open := *cfg
	open.Admin.Token = ""
	resp, err := send(ctx, &open, http.MethodGet, "/healthz", nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return resp.Header.Get(admin.InstanceHeader), nil
}

// onBehalf says in a call whose data directory is meant, so that no other proxy
// answers it that has taken the address meanwhile.
func onBehalf(cfg *config.Config, req *http.Request) {
	if byAddress(cfg) {
		return
	}
	if id := datadir.Instance(cfg.DataDir); id != "" {
		req.Header.Set(admin.InstanceHeader, id)
	}
}

// shown finds the proxy that status is about: the owner, and where data_dir is
// gone, or was never used because memory is off, the one that says that it
// would be.
func shown(ctx context.Context, cfg *config.Config) (*config.Config, error) {
	at, err := findOwner(ctx, cfg)
	if !errors.Is(err, errNoProxy) {
		return at, err
	}
	for _, address := range addresses(cfg) {
		at := *cfg
		at.Admin.Listen = address
		var s admin.Status
		if ask(ctx, &at, http.MethodGet, "/api/v1/status", nil, &s) == nil && s.DataDir == cfg.DataDir {
			return &at, nil
		}
	}
	return nil, err
}
