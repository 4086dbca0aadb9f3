package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/connect"
)

func newServiceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "service",
		Short:   "Start the proxy at login",
		Long:    "Start the proxy at login: with a systemd user unit on Linux, a launchd agent on\nmacOS, and a scheduled task on Windows.",
		Example: "  graphiti-proxy service install",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newServiceInstallCommand(),
		serviceCommand("uninstall", "Stop the proxy, and start it at login no more", func(c *cobra.Command, l *connect.Login) error {
			if err := l.Stop(c.Context()); err != nil {
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), "stopped; connected clients do not answer until it runs again: graphiti-proxy disconnect restores their settings")
			return nil
		}),
		serviceCommand("status", "Show the service as the operating system sees it", func(c *cobra.Command, l *connect.Login) error {
			out, err := connect.Run(c.Context(), l.Status)
			fmt.Fprint(c.OutOrStdout(), out)
			return err
		}))
	return c
}

func newServiceInstallCommand() *cobra.Command {
	var dry bool
	c := serviceCommand("install", "Start the proxy now and at each login", func(c *cobra.Command, l *connect.Login) error {
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
		return nil
	})
	c.Flags().BoolVar(&dry, "print", false, "print the file and the commands, and change nothing")
	return c
}

// serviceCommand returns a command about the service.
func serviceCommand(use, short string, run func(*cobra.Command, *connect.Login) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  graphiti-proxy service " + use,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := cli.LoadConfig(c)
			if err != nil {
				return err
			}
			m, err := machineOf(c, cfg)
			if err != nil {
				return err
			}
			l, err := loginOf(c, cfg, m)
			if err != nil {
				return err
			}
			return run(c, l)
		},
	}
}
