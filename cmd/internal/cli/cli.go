// Package cli owns what the commands share: how settings reach them, how a
// command line is refused, where an operation runs, how results are printed, and the
// commands that need no proxy.
//
// It must not know how a proxy is made.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// Environment is what a command finds when it begins.
type Environment struct {
	Vars []string // as os.Environ
	Dir  string   // the current directory; empty: that of the process
}

type environmentKey struct{}

func environment(c *cobra.Command) Environment {
	env, _ := c.Context().Value(environmentKey{}).(Environment) // none: an empty one
	return env
}

// Dir returns the directory that a command is called in.
func Dir(c *cobra.Command) string { return cmp.Or(environment(c).Dir, ".") }

// InEnvironment makes e the environment of a command.
func InEnvironment(ctx context.Context, e Environment) context.Context {
	return context.WithValue(ctx, environmentKey{}, e)
}

// Usage makes err a UsageError.
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

// RefuseArgs makes commands without arguments refuse them.
func RefuseArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Args == nil {
			sub.Args = noArgs
		}
		RefuseArgs(sub)
	}
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 && c.HasSubCommands() {
		return Refuse(c, args[0])
	}
	if len(args) > 0 {
		return UsageError{fmt.Errorf("%s takes no argument %q; see %s --help", c.CommandPath(), args[0], c.CommandPath())}
	}
	return nil
}

// GlobalFlags adds the flags that every command has.
func GlobalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.String("config", "", "configuration file (default $XDG_CONFIG_HOME/graphiti-proxy/config.yaml; never one of the current directory)")
	f.StringArray("set", nil, "a setting as `key=value`, e.g. recall.timeout=200ms; may be repeated")
	_ = root.RegisterFlagCompletionFunc("set", completeSettings) // the flag is there
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError{fmt.Errorf("%w; see %s --help", flagMistake(err), c.CommandPath())}
	})
}

// JSONFlag adds --json.
func JSONFlag(c *cobra.Command) { c.Flags().Bool("json", false, "print JSON") }

// WantsJSON reports whether JSON is asked for.
func WantsJSON(c *cobra.Command) bool {
	asked, err := c.Flags().GetBool("json")
	return err == nil && asked
}

// Output prints v where JSON is asked for, else what text prints.
func Output(c *cobra.Command, v any, text func(io.Writer)) error {
	if WantsJSON(c) {
		return terminal.JSON(c.OutOrStdout(), v)
	}
	text(c.OutOrStdout())
	return nil
}

// settingFlags are flags that are settings, for those that are given most often.
var settingFlags = map[string]string{"listen": "listen", "upstream": "upstream.openai", "memory": "memory.endpoint"}

// ServeFlags adds flags for the settings that are given most often.
func ServeFlags(c *cobra.Command) {
	c.Flags().String("listen", "", "`address` where clients connect, such as 127.0.0.1:8787")
	c.Flags().String("upstream", "", "`URL` of the provider with OpenAI's API, such as https://openrouter.ai/api")
	c.Flags().String("memory", "", "`URL` of Graphiti, in place of the embedded memory; needs memory.consent")
	for name := range settingFlags {
		_ = c.Flags().SetAnnotation(name, isSetting, []string{}) // the flag is there
	}
}

// isSetting marks the flags of ServeFlags.
const isSetting = "setting"

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
	for name, key := range settingFlags {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Annotations[isSetting] != nil { // another command's may mean something else
			flags[key] = f.Value.String()
		}
	}
	return config.Load(config.Sources{Flags: flags, Env: environment(c).Vars, File: file})
}

// FileLine says which file of settings is in use, and which file in the current
// directory is not.
func FileLine(c *cobra.Command, cfg *config.Config) string {
	line := cfg.File()
	if line == "" {
		line = "no file, only defaults, environment and flags"
	}
	name := filepath.Join(environment(c).Dir, strayFile)
	stray, err := os.Stat(name)
	if err != nil {
		return line
	}
	if used, err := os.Stat(cfg.File()); err == nil && os.SameFile(stray, used) {
		return line
	}
	return line + " (" + name + " of the current directory is not read without --config)"
}

// strayFile is what a file of settings is often called.
const strayFile = "graphiti-proxy.yaml"

// Variable reads the environment of a command.
func Variable(c *cobra.Command) func(name string) string {
	return func(name string) string {
		for _, v := range environment(c).Vars {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
}
