// Command graphiti-proxy gives any LLM client a long-term memory. It owns the wiring of the
// packages, and commands, signals, output and exit codes. A command and a running proxy call
// the same functions of package service.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	_ "time/tzdata" // zones of visitors

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/telemetry"
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
	err := root.ExecuteContext(cli.InEnvironment(context.Background(), cli.Environment{Vars: os.Environ()}))
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(os.Stderr, "graphiti-proxy: "+line)
	}
	var usage cli.UsageError
	var invalid service.InvalidError
	if errors.As(err, &usage) || errors.As(err, &invalid) {
		return exitUsage
	}
	return exitFailure
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "graphiti-proxy",
		Short:         "A transparent proxy that gives any LLM client a long-term memory",
		Version:       telemetry.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Refuse(c, args[0])
			}
			return nil
		},
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
		Example: "  graphiti-proxy demo\n  graphiti-proxy serve\n  graphiti-proxy connect claude-code",
	}
	cli.GlobalFlags(root)
	root.AddCommand(newServeCommand(), newConnectCommand(), newDisconnectCommand(), newDoctorCommand(), newServiceCommand(), newMCPCommand(), newOpenCommand(), newDemoCommand(), newTestCommand(), cli.NewInitCommand(), cli.NewVersionCommand(telemetry.Version()), cli.NewLicensesCommand(), cli.NewConfigCommand(), newStatusCommand(), newStatusLineCommand(), newQueueCommand(), newMemoryCommand(), describedGroup("registry", newRegistryAcceptCommand()), describedGroup("workspace", newWorkspaceJoinCommand()), newTestConnectionCommand(), newRepairCommand(), newBackupCommand(), newRestoreCommand())
	cli.RefuseArgs(root)
	return root
}
