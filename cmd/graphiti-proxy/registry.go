package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newRegistryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "registry",
		Short:   "Confirm the people in identity.users_file",
		Example: "  graphiti-proxy registry accept josh",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRegistryAcceptCommand())
	return c
}

func newRegistryAcceptCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "accept ID",
		Short: "Confirm that a person owns their memory",
		Long: "Confirm that a person in identity.users_file owns the memory of their ID or key.\n" +
			"graphiti-proxy status lists the people without memory until you confirm them: one\n" +
			"of their keys or identities belonged to another memory, or their memory's keys and\n" +
			"identities have all been replaced.\n\n" +
			"If the memory is not empty, the command lists it and asks whether it is this\n" +
			"person's. If it is another person's, delete it first with memory forget.",
		Example: "  graphiti-proxy registry accept josh\n  graphiti-proxy registry accept josh --yes",
		Args:    cli.Needs("the id of a person"),
	}
	c.Flags().BoolVar(&yes, "yes", false, "confirm without asking")
	cli.JSONFlag(c)
	c.RunE = withPlace(openMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Place) error {
		if len(args) > 1 {
			return cli.Usage(errors.New("name one person"))
		}
		id := args[0]
		a := service.Acceptance{ID: id, Keep: yes}
		if !yes {
			var err error
			if a.Keep, err = askKeep(c, at, id); err != nil {
				return err
			}
		}
		done, err := cli.Call(c.Context(), at, service.Accept, a)
		if err != nil {
			return err
		}
		return cli.Output(c, done, func(w io.Writer) {
			fmt.Fprintf(w, "%s has the memory of %s\n", done.ID, terminal.Printable(done.Memory))
		})
	})
	return c
}

// askKeep asks whether the contents of a person's memory are theirs. It does not ask if the
// memory is empty.
func askKeep(c *cobra.Command, at *cli.Place, id string) (keep bool, err error) {
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
