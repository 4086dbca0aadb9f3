// Package cli owns what the commands share: how settings reach them, how a
// command line is refused, how results are printed, and the commands that need
// no proxy.
//
// It must not know how a proxy is made.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/terminal"
)

// Environment is what a command finds when it begins.
type Environment struct {
	Vars []string // as os.Environ
	Dir  string   // where ./graphiti-proxy.yaml is; empty: the working directory
}

type environmentKey struct{}

// InEnvironment lets a command find that.
func InEnvironment(ctx context.Context, e Environment) context.Context {
	return context.WithValue(ctx, environmentKey{}, e)
}

// Usage is an error of a command line.
func Usage(err error) error { return UsageError{err} }

// UsageError is a command line that cannot be understood.
type UsageError struct{ error }

// Needs refuses a command line without arguments.
func Needs(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 || strings.TrimSpace(strings.Join(args, "")) == "" {
			return UsageError{fmt.Errorf("%s needs %s; see %s --help", c.CommandPath(), what, c.CommandPath())}
		}
		return nil
	}
}

// RefuseArgs has commands that take no arguments refuse them.
func RefuseArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Args == nil {
			sub.Args = noArgs
		}
		RefuseArgs(sub)
	}
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no argument %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
	}
	return nil
}

// JSONFlag lets a command print JSON.
func JSONFlag(c *cobra.Command) { c.Flags().Bool("json", false, "print JSON") }

// Output prints v where JSON is asked for, else what text prints.
func Output(c *cobra.Command, v any, text func(io.Writer)) error {
	if asJSON, err := c.Flags().GetBool("json"); err == nil && asJSON {
		return terminal.JSON(c.OutOrStdout(), v)
	}
	text(c.OutOrStdout())
	return nil
}

// LoadConfig reads the settings that a command line, the environment and the
// file give.
func LoadConfig(c *cobra.Command) (*config.Config, error) {
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
			return nil, UsageError{fmt.Errorf("--set %q is not of the form key=value", s)}
		}
		flags[key] = value
	}
	env, _ := c.Context().Value(environmentKey{}).(Environment) // none: an empty one
	return config.Load(config.Sources{Flags: flags, Env: env.Vars, Dir: env.Dir, File: file})
}
