package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/internal/connect"
)

func newServiceCommand() *cobra.Command {
	return describedGroup("service", newServiceInstallCommand(),
		serviceCommand("uninstall", func(c *cobra.Command, l *connect.Login) error {
			if err := l.Stop(c.Context()); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "stopped; connected clients do not answer until it runs again: graphiti-proxy disconnect restores their settings")
			return nil
		}),
		serviceCommand("status", func(c *cobra.Command, l *connect.Login) error {
			if err := l.Managed(c.Context()); err != nil {
				return err
			}
			out, err := connect.Run(c.Context(), l.Status)
			fmt.Fprint(c.OutOrStdout(), out)
			return err
		}))
}

func newServiceInstallCommand() *cobra.Command {
	var dry bool
	c := serviceCommand("install", func(c *cobra.Command, l *connect.Login) error {
		if dry {
			if l.File != "" {
				fmt.Fprintf(c.OutOrStdout(), "# %s\n%s", l.File, l.Text)
			}
			for _, command := range l.Install {
				fmt.Fprintln(c.OutOrStdout(), "$", strings.Join(command, " "))
			}
			return nil
		}
		if err := l.Start(c.Context()); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), "started, and it starts at each login; variables of this shell do not reach it, so write settings into its file: graphiti-proxy init")
		if l.EndsWithSession(c.Context()) {
			fmt.Fprintln(c.OutOrStdout(), "it ends with your last SSH session, and clients then hang; to keep it running: loginctl enable-linger")
		}
		return nil
	})
	c.Flags().BoolVar(&dry, "print", false, "print the file and the commands, and change nothing")
	return c
}

func serviceCommand(name string, run func(*cobra.Command, *connect.Login) error) *cobra.Command {
	c := described("service-" + name)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, m, _, err := machineFor(c, nil)
		if err != nil {
			return err
		}
		l, err := loginOf(c, cfg, m)
		if err != nil {
			return err
		}
		return run(c, l)
	}
	return c
}
