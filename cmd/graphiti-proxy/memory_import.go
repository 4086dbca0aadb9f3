package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/service"
)

const (
	importBatch = 200     // lines in one call
	importBytes = 4 << 20 // of those lines
	maxExport   = 2 << 30 // bytes that are read of a file
)

func newMemoryImportCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "import <file>",
		Short: "Keep what was said elsewhere: JSON Lines, or an export of ChatGPT or Claude",
		Long: "Keep what was said elsewhere. The file is JSON Lines with\n" +
			`  {"scope": "user", "role": "user", "name": "Ann", "content": "…", "timestamp": "2026-11-21T09:00:00Z", "session": "…"}` + "\n" +
			"where role and content are needed, and \"group\" may stand for the scope; or the\n" +
			"conversations.json of an export of a ChatGPT or Claude account, or the .zip with\n" +
			"it. - reads standard input. Each line is kept once, also when the import is done\n" +
			"again, so that one that was interrupted goes on where it ended.",
		Example: "  graphiti-proxy memory import notes.jsonl\n  graphiti-proxy memory import --user josh chatgpt-export.zip",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s needs one file, or - for standard input; see %s --help", c.CommandPath(), c.CommandPath())}
			}
			return nil
		},
	}
	s := selectorFlags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = withMemory(func(c *cobra.Command, args []string, m *opened) error {
		r, size, err := openImport(args[0])
		if err != nil {
			return err
		}
		defer r.Close()
		progress := &progress{w: c.ErrOrStderr(), size: size, last: time.Now()}
		done, err := importFrom(c.Context(), m, s, r, progress)
		if err == nil {
			err = progress.waitFor(c.Context(), m)
		}
		progress.end()
		if err != nil {
			return fmt.Errorf("%w; %d lines were kept before, and doing it again goes on from there", err, done.Kept+done.Known)
		}
		if asJSON {
			return printJSON(c.OutOrStdout(), done)
		}
		fmt.Fprintf(c.OutOrStdout(), "%d lines kept, %d were there already\n", done.Kept, done.Known)
		return nil
	})
	return c
}

// openImport opens a file, or the conversations in an archive.
func openImport(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(os.Stdin), 0, nil
	}
	f, err := os.Open(name) // #nosec G304 -- the user's own
	if err != nil {
		return nil, 0, fmt.Errorf("open the file to import: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if z, err := zip.NewReader(f, info.Size()); err == nil {
		for _, in := range z.File {
			if path.Base(in.Name) == "conversations.json" {
				r, err := in.Open()
				return r, int64(in.UncompressedSize64), err //nolint:gosec // only for the progress
			}
		}
		return nil, 0, errors.Join(fmt.Errorf("%s holds no conversations.json", name), f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// importFrom sends lines in batches, in their order, as fast as the memory takes
// them in.
func importFrom(ctx context.Context, m *opened, s *service.Selector, r io.Reader, p *progress) (done service.Imported, err error) {
	var batch []service.Line
	bytes := 0
	times := make(map[string]int) // equal lines are told apart by their number
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := p.waitForRoom(ctx, m); err != nil {
			return err
		}
		answer, err := m.Import(ctx, *s, batch)
		if err != nil {
			return err
		}
		done.Kept, done.Known = done.Kept+answer.Kept, done.Known+answer.Known
		batch, bytes = batch[:0], 0
		p.show(done.Kept + done.Known)
		return nil
	}
	err = service.ReadLines(io.TeeReader(io.LimitReader(r, maxExport), p), func(n int, l service.Line) error {
		b, _ := json.Marshal(l) // strings only
		if len(b) > importBytes {
			return fmt.Errorf("line %d is larger than %d MiB", n, importBytes>>20)
		}
		if len(batch) == importBatch || bytes+len(b) > importBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if n := times[string(b)]; n > 0 {
			l.ID += "#" + strconv.Itoa(n)
		}
		times[string(b)]++
		l.Number = n
		batch, bytes = append(batch, l), bytes+len(b)
		return nil
	})
	if err != nil {
		return done, err
	}
	return done, flush()
}
