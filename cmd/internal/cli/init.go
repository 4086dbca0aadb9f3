package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// NewVersionCommand returns the command that prints the version.
func NewVersionCommand(version string) *cobra.Command {
	var licenses bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  graphiti-proxy version\n  graphiti-proxy version --json\n  graphiti-proxy version --licenses",
		RunE: func(c *cobra.Command, _ []string) error {
			if licenses {
				return Output(c, map[string]string{"licenses": sentence.Notice}, func(w io.Writer) { fmt.Fprint(w, sentence.Notice) })
			}
			v := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return Output(c, v, func(w io.Writer) {
				fmt.Fprintf(w, "graphiti-proxy %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			})
		},
	}
	JSONFlag(c)
	c.Flags().BoolVar(&licenses, "licenses", false, "print the license, and the attribution of the model in the program")
	return c
}

// NewInitCommand returns the command that writes a file of settings.
func NewInitCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "init [file]",
		Short: "Write a configuration file with every setting explained",
		Long: "Write a configuration file with every setting explained. All settings are\n" +
			"commented out, so that the defaults apply until you change one. The default name\n" +
			"is $XDG_CONFIG_HOME/graphiti-proxy/config.yaml, which the proxy reads by itself;\n" +
			"other files need --config. - prints the file. An existing file is not replaced\n" +
			"without --force.",
		Example: "  graphiti-proxy init\n  graphiti-proxy init settings.yaml   # read with --config settings.yaml\n  graphiti-proxy init - | less",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return UsageError{fmt.Errorf("%s takes one file; see %s --help", c.CommandPath(), c.CommandPath())}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			name, _ := c.Flags().GetString("config")
			switch {
			case c.Flags().Changed("set"):
				return UsageError{errors.New("init writes the defaults: leave out --set, and change the file")}
			case len(args) == 1 && name != "":
				return UsageError{errors.New("name one file: as an argument, or with --config")}
			case len(args) == 1:
				name = args[0]
			case name == "":
				name = config.UsualFile(environment(c).Vars)
			}
			if name == "" {
				return errors.New("no home directory to write the file to; name a file, and start with --config")
			}
			if name == "-" {
				config.Template(c.OutOrStdout())
				return nil
			}
			if err := writeTemplate(name, force); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "wrote %s; change what you need, and see graphiti-proxy config check\n", name)
			if model := ollamaModel(c.Context(), ollama); model != "" {
				fmt.Fprintf(c.OutOrStdout(), "Ollama runs on this machine; its model %s can distil facts from your conversations if you set\n  memory.consent: %[2]s/v1\n  distil.url: %[2]s/v1\n  distil.model: %[1]s\n",
					terminal.Printable(model), ollama)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return c
}

// ollama is the usual address of an Ollama server.
const ollama = "http://127.0.0.1:11434"

// ollamaModel returns the name of the first model of an Ollama server, or "".
func ollamaModel(ctx context.Context, base string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tags", nil)
	if err != nil {
		return ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&tags) != nil || len(tags.Models) == 0 {
		return ""
	}
	return tags.Models[0].Name
}

func writeTemplate(name string, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	f, err := os.OpenFile(name, flags, 0o600) // #nosec G304 -- the user's own
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s already exists; name another file, or add --force to replace it", name)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	config.Template(f)
	if err := f.Close(); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}
