package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryImportCommand() *cobra.Command {
	c := described("memory-import")
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cli.Usage(fmt.Errorf("%s needs one file, or - for standard input; see %s --help", c.CommandPath(), c.CommandPath()))
		}
		return nil
	}
	var in service.ImportRequest
	cli.InputFlags(c, &in)
	cli.JSONFlag(c)
	c.RunE = withPlace(makeMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Runner) error {
		file, size, err := service.OpenImport(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		progress := terminal.NewProgress(c.ErrOrStderr(), size)
		im := service.FileImport{Distil: in.Distil, Tell: progress.Show, Call: func(ctx context.Context, in service.ImportRequest) (service.Imported, error) {
			return cli.Call(ctx, at, service.Import, in)
		}, Pending: func(ctx context.Context) (int, error) {
			q, err := cli.Call(ctx, at, service.Counts, struct{}{})
			return q.Pending, err
		}}
		left := 0
		done, err := im.Run(c.Context(), in.Selector, io.TeeReader(file, progress))
		if err == nil {
			left, err = im.Await(c.Context(), done)
		}
		if err != nil {
			progress.End()
			if n := done.Kept + done.Known; n > 0 {
				err = fmt.Errorf("%w; %s already imported, run the import again to continue", err, terminal.Count(n, "line"))
			}
			return err
		}
		progress.Done(done.Kept + done.Known)
		if left > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "%d turns are on disk and wait, because the memory accepts none at the moment; see graphiti-proxy queue status\n", left)
		}
		return cli.Output(c, done, func(w io.Writer) {
			fmt.Fprintf(w, "%s imported, %d already present\n", terminal.Count(done.Kept, "message"), done.Known)
			if done.NotTaken > 0 {
				fmt.Fprintf(w, "%s skipped: only an operator may import session notes\n", terminal.Count(done.NotTaken, "line"))
			}
		})
	})
	return c
}
