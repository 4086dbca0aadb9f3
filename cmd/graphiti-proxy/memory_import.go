package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

func newMemoryImportCommand() *cobra.Command {
	var agents, yes bool
	c := &cobra.Command{
		Use:   "import <file>",
		Short: "Import conversations: transcripts of coding agents, exports, or JSON Lines",
		Long: "Import conversations from elsewhere. The file is JSON Lines with\n" +
			`  {"scope": "user", "role": "user", "name": "Ann", "content": "…", "timestamp": "2026-11-21T09:00:00Z", "session": "…"}` + "\n" +
			"with required role and content, and \"group\" as an alternative to \"scope\"; or the\n" +
			"conversations.json of a ChatGPT or Claude account export, or the .zip or folder\n" +
			"with it, of which the current branch of each conversation is imported;\n" +
			"or the output of graphiti-proxy memory export, which is stored unchanged. A\n" +
			"conversation keeps its id for --session: chatgpt-<id>, claude-<id>.\n" +
			"- reads standard input. Each line is stored once: to continue an interrupted\n" +
			"import, run it again. The limits are 32 MiB for a line or a conversation, and\n" +
			"2 GiB and 2,000,000 messages for a file or an unpacked archive.\n\n" +
			"--agents reads the transcripts that coding agents store on this machine: Claude\n" +
			"Code, Codex, opencode, Kilo, Gemini CLI, Qwen Code, Copilot CLI, Cline, Continue,\n" +
			"Kimi Code, pi and aider. It lists them by client and project; --yes imports them.\n" +
			"Turns that went through the proxy are recognized, and the words in transcripts\n" +
			"never become rules or preferences. memory forget --import takes an import back.",
		Example: "  graphiti-proxy memory import notes.jsonl\n  graphiti-proxy memory import --agents\n  graphiti-proxy memory import --agents --yes\n  graphiti-proxy memory import --user josh chatgpt-export.zip",
	}
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case agents && len(args) > 0:
			return cli.Usage(errors.New("--agents reads the transcripts of this machine: leave out the file"))
		case !agents && yes:
			return cli.Usage(errors.New("--yes is for --agents: a file is imported without it"))
		case !agents && len(args) != 1:
			return cli.Usage(fmt.Errorf("%s needs one file, or - for standard input; see %s --help", c.CommandPath(), c.CommandPath()))
		}
		return nil
	}
	s := selectorFlags(c)
	c.Flags().BoolVar(&agents, "agents", false, "the transcripts of coding agents on this machine, instead of a file")
	c.Flags().BoolVar(&yes, "yes", false, "import the transcripts that --agents lists")
	cli.JSONFlag(c)
	imports := withPlace(makeMemoryFiles, nil, func(c *cobra.Command, args []string, at *cli.Place) error {
		if agents {
			return importAgents(c, at)
		}
		return importFile(c, at, s, args[0])
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case agents && *s != (service.Selector{}):
			return cli.Usage(errors.New("--agents finds the project of each conversation: leave out --user, --workspace and other selections"))
		case agents && !yes:
			return importAgents(c, nil)
		}
		return imports(c, args)
	}
	return c
}

// importFile imports a file, or standard input.
func importFile(c *cobra.Command, at *cli.Place, s *service.Selector, name string) error {
	file, size, err := service.OpenImport(name)
	if err != nil {
		return err
	}
	defer file.Close()
	progress := terminal.NewProgress(c.ErrOrStderr(), size)
	im := service.FileImport{Tell: progress.Show, Call: func(ctx context.Context, in service.ImportRequest) (service.Imported, error) {
		return cli.Call(ctx, at, service.Import, in)
	}, Pending: func(ctx context.Context) (int, error) {
		q, err := cli.Call(ctx, at, service.Counts, struct{}{})
		return q.Pending, err
	}}
	left := 0
	done, err := im.Run(c.Context(), *s, io.TeeReader(file, progress))
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
		if done.LeftOut > 0 {
			fmt.Fprintf(w, "%s skipped: replaced by an edit or another answer, hidden, or marked as not to remember\n", terminal.Count(done.LeftOut, "message"))
		}
		if done.NotTaken > 0 {
			fmt.Fprintf(w, "%s skipped: only an operator may import session notes\n", terminal.Count(done.NotTaken, "line"))
		}
	})
}
