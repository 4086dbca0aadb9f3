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
		Short:   "Confirm who the people in identity.users_file are",
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
		Short: "Confirm that the memory of a person is theirs",
		Long: "Confirm that a person in identity.users_file is the one whose memory their id, or\n" +
			"their key, names. graphiti-proxy status lists the people who have no memory until\n" +
			"that is confirmed: one of their keys or identities belonged to another memory, or\n" +
			"none of those that belonged to their memory is theirs any more.\n\n" +
			"While something is held in the memory, the command lists it and asks whether it is\n" +
			"this person's. If it is somebody else's, delete it first with memory forget.",
		Example: "  graphiti-proxy registry accept josh\n  graphiti-proxy registry accept josh --yes",
		Args:    cli.Needs("the id of a person"),
	}
	c.Flags().BoolVar(&yes, "yes", false, "what is held is this person's: do not ask")
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
	agreed, err := ask(errOut, "is all of this the memory of the person who has the id "+id+" now?")
	if err != nil {
		return false, cli.Usage(fmt.Errorf("nothing was changed: %w; if what is held is this person's, add --yes; else run %s first", err, otherwise))
	}
	if !agreed {
		return false, fmt.Errorf("nothing was changed; to have this person begin with an empty memory, run %s first", otherwise)
	}
	return true, nil
}
