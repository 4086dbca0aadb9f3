package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/service"
)

const (
	importBatch  = 200     // lines in one call
	importBytes  = 4 << 20 // of those lines
	importWindow = 10 * time.Minute
	maxExport    = 2 << 30 // bytes that are read of a file

	// byteOrderMark begins texts of some editors.
	byteOrderMark = "\ufeff"
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
	err = readLines(io.TeeReader(io.LimitReader(r, maxExport), p), func(n int, l service.Line) error {
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

// readLines finds out what a file is and calls f for each message in it, with
// the number of its line, or of the message in an export.
func readLines(r io.Reader, f func(int, service.Line) error) error {
	in := bufio.NewReaderSize(r, 1<<20)
	if b, err := in.Peek(len(byteOrderMark)); err == nil && string(b) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // it was peeked
	}
	n := 1
	for b, err := in.ReadByte(); err == nil; b, err = in.ReadByte() {
		if b == '\n' {
			n++
		}
		if strings.IndexByte(" \t\r\n", b) < 0 {
			_ = in.UnreadByte() // it was read
			if b == '[' {
				return readExport(in, f)
			}
			break
		}
	}
	for ; ; n++ {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var l service.Line
			d := json.NewDecoder(bytes.NewReader(line))
			d.DisallowUnknownFields()
			err := d.Decode(&l)
			if err == nil && d.More() {
				err = errors.New("there is more behind its end")
			}
			if err != nil {
				return fmt.Errorf("line %d is not what is imported: %w; write {\"role\":\"user\",\"content\":\"…\"} and what memory import --help names", n, err)
			}
			if err := f(n, l); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the file: %w", err)
		}
	}
}

// exported is a conversation as either account's export has it.
type exported struct {
	// ChatGPT's
	ID      string                 `json:"conversation_id"`
	Mapping map[string]exportedTip `json:"mapping"`
	Current string                 `json:"current_node"`

	// Claude's
	UUID     string `json:"uuid"`
	Messages []struct {
		UUID    string `json:"uuid"`
		Text    string `json:"text"`
		Sender  string `json:"sender"`
		Created string `json:"created_at"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"chat_messages"`
}

type exportedTip struct {
	Parent  string `json:"parent"`
	Message *struct {
		Author struct {
			Role string `json:"role"`
		} `json:"author"`
		Created float64 `json:"create_time"`
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
	} `json:"message"`
}

// readExport reads the conversations of an account one by one.
func readExport(r io.Reader, f func(int, service.Line) error) error {
	d := json.NewDecoder(r)
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	message := 0
	for n := 1; d.More(); n++ {
		var e exported
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("conversation %d of the export cannot be read: %w", n, err)
		}
		if e.Mapping == nil && e.Messages == nil {
			return fmt.Errorf("item %d of the file is no conversation of ChatGPT or Claude; lines as memory import --help names them stand each on a line of its own, without brackets around them", n)
		}
		for _, l := range append(e.chatGPT(), e.claude()...) {
			message++
			if err := f(message, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// chatGPT is the branch that was shown last, from its beginning.
func (e *exported) chatGPT() (lines []service.Line) {
	for id, steps := e.Current, 0; id != "" && steps <= len(e.Mapping); steps++ {
		tip := e.Mapping[id]
		if m := tip.Message; m != nil && (m.Author.Role == "user" || m.Author.Role == "assistant") {
			var texts []string
			for _, p := range m.Content.Parts {
				var text string
				if json.Unmarshal(p, &text) == nil && strings.TrimSpace(text) != "" { // others are pictures
					texts = append(texts, text)
				}
			}
			if len(texts) > 0 {
				l := service.Line{Role: m.Author.Role, Content: strings.Join(texts, "\n"), Session: "chatgpt-" + e.ID, ID: id}
				if m.Created > 0 {
					l.Timestamp = time.UnixMilli(int64(m.Created * 1000)).UTC().Format(time.RFC3339)
				}
				lines = append([]service.Line{l}, lines...)
			}
		}
		id = tip.Parent
	}
	return lines
}

func (e *exported) claude() (lines []service.Line) {
	for _, m := range e.Messages {
		text := m.Text
		if len(m.Content) > 0 {
			var texts []string
			for _, c := range m.Content {
				if c.Type == "text" {
					texts = append(texts, c.Text)
				}
			}
			text = strings.Join(texts, "\n")
		}
		role := map[string]string{"human": "user", "assistant": "assistant"}[m.Sender]
		if role == "" || strings.TrimSpace(text) == "" {
			continue
		}
		l := service.Line{Role: role, Content: text, Session: "claude-" + e.UUID, ID: m.UUID}
		if t, err := time.Parse(time.RFC3339, m.Created); err == nil {
			l.Timestamp = t.UTC().Format(time.RFC3339)
		}
		lines = append(lines, l)
	}
	return lines
}
