package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
	"github.com/graphiti-proxy/graphiti-proxy/certificate"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// NewConfigCommand checks and shows the settings.
func NewConfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Check and show the configuration",
		Example: "  graphiti-proxy config check\n  graphiti-proxy config print --origin",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	check := &cobra.Command{
		Use:     "check",
		Short:   "Check the configuration, and name every mistake",
		Example: "  graphiti-proxy config check --config graphiti-proxy.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := LoadConfig(c)
			if err != nil {
				return err
			}
			registered, err := CheckFiles(cfg)
			if err != nil {
				return err
			}
			valid := map[string]any{
				"valid": true, "file": cfg.File(), "listen": cfg.Listen, "upstream": cfg.Upstream.OpenAI, "memory": MemoryLine(cfg), "people": registered,
			}
			return Output(c, valid, func(w io.Writer) {
				fmt.Fprintf(w, "file      %s\nlisten    %s\nupstream  %s\nmemory    %s\n",
					cmp.Or(cfg.File(), "none, defaults and environment only"), cfg.Listen, UpstreamLine(cfg.Upstreams()), MemoryLine(cfg))
				if cfg.Identity.UsersFile != "" {
					fmt.Fprintf(w, "people    %d in %s\n", registered, cfg.Identity.UsersFile)
				}
				fmt.Fprintln(w, "the configuration is valid")
			})
		},
	}
	JSONFlag(check)
	var origins bool
	show := &cobra.Command{
		Use:     "print",
		Short:   "Print every setting in force, with secrets masked",
		Example: "  graphiti-proxy config print > all-settings.yaml\n  graphiti-proxy config print --origin",
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := LoadConfig(c)
			if err != nil {
				return err
			}
			return Output(c, cfg.Settings(), func(w io.Writer) { cfg.Print(w, origins) })
		},
	}
	show.Flags().BoolVar(&origins, "origin", false, "add where each value comes from")
	JSONFlag(show)
	c.AddCommand(check, show)
	return c
}

// ErrOwner says that identity.owner is no name.
var ErrOwner = errors.New("identity.owner: not a name; write e.g. github_login:octocat")

// CheckFiles finds the mistakes that are in what the configuration names: all of
// them. It returns how many people are registered.
func CheckFiles(cfg *config.Config) (people int, err error) {
	list, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if cfg.Identity.Owner != "" {
		if _, ok := graphiti.UserKey(cfg.Identity.Owner); !ok {
			err = errors.Join(err, ErrOwner)
		}
	}
	_, failed := certificate.Server(cfg.TLS.Cert, cfg.TLS.Key, slog.New(slog.DiscardHandler))
	return len(list), errors.Join(err, failed)
}

// MemoryLine says in a few words which memory is used, and where it lives.
func MemoryLine(cfg *config.Config) string {
	switch {
	case cfg.Memory.Backend == "off":
		return "off (memory.backend)"
	case cfg.Memory.Backend == "embedded":
		return "embedded, in " + cfg.DataDir
	case !cfg.Memory.Consent:
		return "OFF: Graphiti at " + cfg.Memory.Endpoint + " needs your consent; set memory.consent to true to send conversations there"
	}
	line := "Graphiti at " + cfg.Memory.Endpoint
	if o, err := redis.Parse(cfg.State.RedisURL); err == nil && cfg.State.Backend == "redis" {
		line += ", shared with other replicas over Redis at " + o.Addr
	}
	return line
}

// UpstreamLine names the default upstream, and then the others.
func UpstreamLine(upstreams map[string]string) string {
	line := upstreams[registry.DefaultUpstream]
	for _, name := range slices.Sorted(maps.Keys(upstreams)) {
		if name != registry.DefaultUpstream {
			line += ", " + name + " " + upstreams[name]
		}
	}
	return line
}
