package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// NewConfigCommand returns the command that checks and shows the settings.
func NewConfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Check and show the configuration",
		Example: "  graphiti-proxy config check\n  graphiti-proxy config print --origin",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	checks := &cobra.Command{
		Use:     "check",
		Short:   "Check the configuration, and name every mistake",
		Example: "  graphiti-proxy config check --config settings.yaml",
		RunE:    func(c *cobra.Command, _ []string) error { return check(c) },
	}
	JSONFlag(checks)
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
	c.AddCommand(checks, show)
	return c
}

// checked is the result of a check. config print has the settings themselves.
type checked struct {
	Valid    bool     `json:"valid"`
	Mistakes []string `json:"mistakes,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	File     string   `json:"file,omitempty"`
}

// check prints notes on the settings, and returns all their mistakes.
func check(c *cobra.Command) error {
	var found checked
	cfg, err := LoadConfig(c)
	if err == nil {
		found.File, found.Notes = cfg.File(), notes(cfg)
		err = checkFiles(cfg)
	}
	if err != nil {
		found.Mistakes = strings.Split(err.Error(), "\n")
	}
	found.Valid = err == nil
	if !WantsJSON(c) && err != nil {
		return err
	}
	return errors.Join(err, Output(c, found, func(w io.Writer) {
		fmt.Fprintf(w, "settings  %s\n", FileLine(cfg))
		for _, n := range found.Notes {
			fmt.Fprintf(w, "note      %s\n", n)
		}
		fmt.Fprintln(w, "the configuration is valid")
	}))
}

// notes returns the unexpected effects of valid settings.
func notes(cfg *config.Config) []string {
	list := cfg.Notes()
	if cfg.RemoteMemory() && !cfg.Consented() {
		list = append(list, "memory is "+MemoryLine(cfg))
	}
	if cfg.Distil.URL != "" && !cfg.DistilConsented() {
		list = append(list, "facts are OFF: to send conversations to "+cfg.Distil.URL+", set memory.consent to that address")
	}
	if room := wire.RoomForClients(); wire.TooFew(room, cfg.Limits.Connections) {
		list = append(list, fmt.Sprintf("limits.connections is %d, and there are file descriptors for %d clients; %s", cfg.Limits.Connections, room, wire.MoreFiles))
	}
	if cfg.Identity.UsersFile != "" && cfg.Identity.Mode == "single" {
		list = append(list, "identity.users_file: keys of people and auditors open the admin side only with identity.mode: multi")
	}
	return list
}

// ErrOwner is the error of an identity.owner that is not a name.
var ErrOwner = errors.New("identity.owner: not a name; write e.g. github_login:octocat")

// checkFiles returns all mistakes in the files that the configuration names.
func checkFiles(cfg *config.Config) error {
	_, err := identity.LoadPeople(cfg.Identity.UsersFile)
	if cfg.Identity.Owner != "" {
		if _, ok := graphiti.UserKey(cfg.Identity.Owner); !ok {
			err = errors.Join(err, ErrOwner)
		}
	}
	_, failed := ServerCertificate(cfg.TLS.Cert, cfg.TLS.Key, slog.New(slog.DiscardHandler))
	return errors.Join(err, failed)
}

// StorePlace returns the place of the embedded memory.
func StorePlace(cfg *config.Config) string {
	if cfg.State.Backend == "postgres" {
		return "Postgres"
	}
	return cfg.DataDir
}

// MemoryLine returns the kind and the place of the memory in a few words.
func MemoryLine(cfg *config.Config) string {
	switch {
	case cfg.Memory.Backend == "off":
		return "off (memory.backend)"
	case cfg.Memory.Backend == "embedded":
		return "embedded, in " + StorePlace(cfg)
	case !cfg.Consented():
		return "OFF: Graphiti at " + cfg.Memory.Endpoint + " needs your consent; to send conversations there, set memory.consent to that address"
	}
	return "Graphiti at " + cfg.Memory.Endpoint
}

// UpstreamLine lists the default upstream and then the others.
func UpstreamLine(upstreams map[string]string) string {
	line := upstreams[registry.DefaultUpstream]
	for _, name := range slices.Sorted(maps.Keys(upstreams)) {
		if name != registry.DefaultUpstream {
			line += ", " + name + " " + upstreams[name]
		}
	}
	return line
}
