package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newRegistryAcceptCommand() *cobra.Command {
	var yes bool
	c := described("registry-accept")
	c.Args = cli.NeedsOne("the id of one person")
	c.Flags().BoolVar(&yes, "yes", false, "confirm without asking")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Runner) error {
		id := args[0]
		a := service.Acceptance{ID: id, Keep: yes}
		if !yes {
			var err error
			if a.Keep, err = askKeep(c, at, id); err != nil {
				return err
			}
		}
		return answer(c, at, service.Accept, &a, nil, func(w, _ io.Writer, done *service.Accepted) {
			fmt.Fprintf(w, "%s has the memory of %s\n", done.ID, terminal.Printable(done.Memory))
		})
	})
	return c
}

// askKeep asks whether the contents of a person's memory are theirs. It does not ask if the
// memory is empty.
func askKeep(c *cobra.Command, at *cli.Runner, id string) (keep bool, err error) {
	groups, err := findGroups(c.Context(), at, &service.Selector{User: id})
	if err != nil {
		return false, err
	}
	groups = slices.DeleteFunc(groups, func(o ledger.Owned) bool { return o.Empty || o.Shared })
	if len(groups) == 0 {
		return false, nil
	}
	errOut := c.ErrOrStderr()
	cli.PrintGroups(errOut, groups)
	otherwise := "graphiti-proxy memory forget --user " + id
	agreed, err := ask(errOut, "is all of this the memory of the person with the id "+id+" now?")
	if err != nil {
		return false, cli.Usage(fmt.Errorf("not confirmed: %w; if this memory is the person's, add --yes; else run %s first", err, otherwise))
	}
	if !agreed {
		return false, fmt.Errorf("not confirmed; to start this person with an empty memory, run %s first", otherwise)
	}
	return true, nil
}
