// Command graphiti-proxy gives any LLM client a long-term memory. It owns the
// wiring of the packages, commands, signals, output and exit codes, and is the
// only one that knows all packages.
//
// It must not know how anything is done: a command and a proxy that runs call
// the same functions of package service.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/service"
	"github.com/graphiti-proxy/graphiti-proxy/telemetry"
	"github.com/graphiti-proxy/graphiti-proxy/terminal"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns the exit code.
func run(args []string) int {
	root := newRootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(inEnvironment(context.Background(), environment{vars: os.Environ()}))
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, "graphiti-proxy: "+line)
	}
	var usage usageError
	var invalid service.InvalidError
	if errors.As(err, &usage) || errors.As(err, &invalid) {
		return exitUsage
	}
	return exitFailure
}

// environment is what a command finds when it begins.
type environment struct {
	vars []string // as os.Environ
	dir  string   // where ./graphiti-proxy.yaml is; empty: the working directory
}

type environmentKey struct{}

func inEnvironment(ctx context.Context, e environment) context.Context {
	return context.WithValue(ctx, environmentKey{}, e)
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "graphiti-proxy",
		Short:         "A transparent proxy that gives any LLM client a long-term memory",
		Version:       telemetry.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%q is not a command; see graphiti-proxy --help", args[0])}
			}
			return nil
		},
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  graphiti-proxy demo\n  graphiti-proxy serve\n  OPENAI_BASE_URL=http://127.0.0.1:8787/v1 your-client",
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	f := root.PersistentFlags()
	f.String("config", "", "configuration file (default ./graphiti-proxy.yaml, else $XDG_CONFIG_HOME/graphiti-proxy/config.yaml)")
	f.StringArray("set", nil, "a setting as `key=value`, e.g. recall.timeout=200ms; may be repeated")
	root.AddCommand(newServeCommand(), newDemoCommand(), newConfigCommand(), newStatusCommand(), newQueueCommand(), newMemoryCommand(), newTestConnectionCommand(), newRepairCommand())
	refuseArgs(root)
	return root
}

// refuseArgs has commands that take no arguments refuse them.
func refuseArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Args == nil {
			sub.Args = noArgs
		}
		refuseArgs(sub)
	}
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
	}
	return nil
}

// jsonFlag lets a command print JSON.
func jsonFlag(c *cobra.Command) { c.Flags().Bool("json", false, "print JSON") }

// output prints v where JSON is asked for, else what text prints.
func output(c *cobra.Command, v any, text func(io.Writer)) error {
	if asJSON, err := c.Flags().GetBool("json"); err == nil && asJSON {
		return terminal.JSON(c.OutOrStdout(), v)
	}
	text(c.OutOrStdout())
	return nil
}

// loadConfig reads the settings that a command line, the environment and the
// file give.
func loadConfig(c *cobra.Command) (*config.Config, error) {
	file, err := c.Flags().GetString("config")
	if err != nil {
		return nil, err
	}
	sets, err := c.Flags().GetStringArray("set")
	if err != nil {
		return nil, err
	}
	flags := make(map[string]string)
	for _, s := range sets {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--set %q is not of the form key=value", s)}
		}
		flags[key] = value
	}
	env, _ := c.Context().Value(environmentKey{}).(environment) // none: an empty one
	return config.Load(config.Sources{Flags: flags, Env: env.vars, Dir: env.dir, File: file})
}
