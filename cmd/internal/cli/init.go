package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// NewVersionCommand returns the command that prints the version.
func NewVersionCommand(version string) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  graphiti-proxy version\n  graphiti-proxy version --json",
		RunE: func(c *cobra.Command, _ []string) error {
			v := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return Output(c, v, func(w io.Writer) {
				fmt.Fprintf(w, "graphiti-proxy %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			})
		},
	}
	JSONFlag(c)
	return c
}

// licenses contains the license of each module in the program.
//
//go:generate ../../../deploy/licenses/write.sh
//go:embed licenses.txt
var licenses string

// NewLicensesCommand returns the command that prints the licenses of others' work in the program.
func NewLicensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "licenses",
		Short:   "Print the licenses of the libraries and of the model in the program",
		Example: "  graphiti-proxy licenses | less",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), sentence.Notice, "\n", licenses)
			return err
		},
	}
}

// NewInitCommand returns the command that writes a file of settings.
func NewInitCommand() *cobra.Command {
	var force, short bool
	c := &cobra.Command{
		Use:   "init [file]",
		Short: "Write a configuration file with every setting explained",
		Long: "Write a configuration file with every setting explained, or with --short the ones\n" +
			"that most people change. All settings are commented out, so that the defaults\n" +
			"apply until you delete the # of a line. The default name\n" +
			"is $XDG_CONFIG_HOME/graphiti-proxy/config.yaml, which the proxy reads by itself;\n" +
			"other files need --config. - prints the file. An existing file is not replaced\n" +
			"without --force.",
		Example: "  graphiti-proxy init --short\n  graphiti-proxy init settings.yaml   # read with --config settings.yaml\n  graphiti-proxy init - | less",
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
				config.Template(c.OutOrStdout(), short)
				return nil
			}
			if err := writeTemplate(name, force, short); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "wrote %s; change what you need, and see graphiti-proxy config check\n", name)
			return nil
		},
	}
	c.Flags().BoolVar(&short, "short", false, "write only the settings that most people change")
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return c
}

func writeTemplate(name string, force, short bool) error {
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
	config.Template(f, short)
	if err := f.Close(); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}
