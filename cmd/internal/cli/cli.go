// Package cli owns the shared parts of the commands: the source of their settings, the
// refusal of wrong command lines, the place of their operations, the output of results, and
// the commands without a proxy.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// Environment is the environment of a command.
type Environment struct {
	Vars []string // in the form of os.Environ
	Dir  string   // current directory; empty for that of the process
}

type environmentKey struct{}

func environment(c *cobra.Command) Environment {
	env, _ := c.Context().Value(environmentKey{}).(Environment) // the zero value without one
	return env
}

// Dir returns the current directory of a command.
func Dir(c *cobra.Command) string { return cmp.Or(environment(c).Dir, ".") }

// InEnvironment returns a context with the environment e for a command.
func InEnvironment(ctx context.Context, e Environment) context.Context {
	return context.WithValue(ctx, environmentKey{}, e)
}

func Usage(err error) error { return UsageError{err} }

// UsageError is the error of a wrong command line.
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

// NeedsOne refuses a command line without one argument.
func NeedsOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return UsageError{fmt.Errorf("name %s; see %s --help", what, c.CommandPath())}
		}
		return Needs(what)(c, args)
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
	_ = root.RegisterFlagCompletionFunc("set", completeSettings) // the flag exists
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
}

// JSONFlag adds --json.
func JSONFlag(c *cobra.Command) { c.Flags().Bool("json", false, "print JSON") }

// WantsJSON reports whether --json is set.
func WantsJSON(c *cobra.Command) bool {
	asked, err := c.Flags().GetBool("json")
	return err == nil && asked
}

// Output prints v with --json, and otherwise the output of text.
func Output(c *cobra.Command, v any, text func(io.Writer)) error {
	if WantsJSON(c) {
		return terminal.JSON(c.OutOrStdout(), v)
	}
	text(c.OutOrStdout())
	return nil
}

// settingFlags maps flags to the settings that they set.
var settingFlags = map[string]string{"listen": "listen", "upstream": "upstream.openai", "memory": "memory.endpoint"}

// ServeFlags adds flags for the most frequent settings.
func ServeFlags(c *cobra.Command) {
	c.Flags().String("listen", "", "`address` where clients connect, such as 127.0.0.1:8787")
	c.Flags().String("upstream", "", "`URL` of the provider with OpenAI's API, such as https://openrouter.ai/api")
	c.Flags().String("memory", "", "`URL` of Graphiti, in place of the embedded memory; needs memory.consent")
	for name := range settingFlags {
		_ = c.Flags().SetAnnotation(name, isSetting, []string{}) // the flag exists
	}
}

// isSetting marks the flags of ServeFlags.
const isSetting = "setting"

// LoadConfig reads the settings from the command line, the environment and the file.
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
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Annotations[isSetting] != nil { // a flag of another command may mean something else
			flags[key] = f.Value.String()
		}
	}
	return config.Load(config.Sources{Flags: flags, Env: environment(c).Vars, File: file})
}

// FileLine returns the name of the file of settings in use.
func FileLine(cfg *config.Config) string {
	return cmp.Or(cfg.File(), "no file, only defaults, environment and flags")
}

// Variable returns a function that reads variables from the environment of a command.
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
