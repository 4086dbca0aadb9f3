package service

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	importLines = maxLines - 1 // in one call, and the other side of a turn
	importBytes = 4 << 20      // of those lines
)

// ImportFile is an open file to import.
type ImportFile struct {
	io.ReadCloser
	Size    int64    // in bytes, or 0 if it is unknown
	Omitted []string // other JSON files of an archive or a folder, which are not read
}

// OpenImport opens a file to import, or the conversations in an archive or a folder; - is
// standard input.
func OpenImport(name string) (*ImportFile, error) {
	if name == "-" {
		return &ImportFile{ReadCloser: io.NopCloser(os.Stdin)}, nil
	}
	f, err := os.Open(name) // #nosec G304 -- the user's own
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("no such file")
		}
		return nil, fmt.Errorf("cannot open %s: %w", name, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, errors.Join(err, f.Close())
	case info.IsDir():
		return readArchive(f, os.DirFS(name))
	case !info.Mode().IsRegular(): // a pipe, as of a shell's <(…)
		return &ImportFile{ReadCloser: f}, nil
	}
	return ReadImport(f, info.Size())
}

// ReadImport returns a file of a size to import, or the conversations in it. It closes the file
// after an error.
func ReadImport(f interface {
	io.ReadCloser
	io.ReaderAt
}, size int64) (*ImportFile, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return &ImportFile{ReadCloser: f, Size: size}, nil //nolint:nilerr // any other file contains lines or an export
	}
	return readArchive(f, z)
}

func readArchive(f io.Closer, files fs.FS) (*ImportFile, error) {
	in := &archived{closers: []io.Closer{f}}
	err := in.add(files, 0)
	if err == nil && len(in.readers) == 0 {
		err = errors.New("it contains no conversations.json")
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	in.Reader = io.MultiReader(in.readers...)
	return &ImportFile{in, in.size, in.omitted}, nil
}

// archived reads the conversations of an archive or a folder, one file after the other.
type archived struct {
	io.Reader
	readers []io.Reader
	closers []io.Closer
	size    int64
	omitted []string
}

// conversations matches the names of files with conversations.
var conversations = regexp.MustCompile(`^conversations(-\d+)?\.json$`)

const (
	maxFolders  = 3 // around a file
	maxArchives = 2 // around a file
	maxOmitted  = 5 // names of omitted files
)

// add opens the files with conversations in their order, and archives in the archive.
func (a *archived) add(in fs.FS, depth int) error {
	return fs.WalkDir(in, ".", func(name string, e fs.DirEntry, err error) error {
		nested := depth+1 < maxArchives && strings.EqualFold(path.Ext(name), ".zip")
		switch {
		case err != nil:
			return fmt.Errorf("list the files of the export: %w", err)
		case e.IsDir() && strings.Count(name, "/") >= maxFolders:
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !nested && !conversations.MatchString(e.Name()):
			if strings.EqualFold(path.Ext(name), ".json") && len(a.omitted) < maxOmitted {
				a.omitted = append(a.omitted, name)
			}
			return nil
		}
		f, err := in.Open(name)
		if err != nil {
			return fmt.Errorf("open %s in the export: %w", name, err)
		}
		if nested {
			return errors.Join(a.unpack(f, depth+1), f.Close())
		}
		a.readers, a.closers = append(a.readers, transform.NewReader(f, unicode.BOMOverride(transform.Nop))), append(a.closers, f)
		if info, err := f.Stat(); err == nil {
			a.size += info.Size()
		}
		return nil
	})
}

// unpack adds an archive in an archive. Its end has the list of its files, so it needs a
// file of its own for the time of the import.
func (a *archived) unpack(r io.Reader, depth int) error {
	f, err := os.CreateTemp("", "graphiti-proxy-import-*")
	if err != nil {
		return fmt.Errorf("unpack the export: %w", err)
	}
	a.closers = append(a.closers, f, removal(f.Name()))
	n, err := io.Copy(f, io.LimitReader(r, maxExport+1))
	if err == nil && n > maxExport {
		err = errExport
	}
	if err != nil {
		return fmt.Errorf("unpack the export: %w", err)
	}
	z, err := zip.NewReader(f, n)
	if err != nil {
		return fmt.Errorf("unpack the export: %w", err)
	}
	return a.add(z, depth)
}

// removal removes a file.
type removal string

func (r removal) Close() error { return os.Remove(string(r)) }

func (a *archived) Close() error {
	var errs []error
	for _, c := range a.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// FileImport is an import of a file, in calls of Import.
type FileImport struct {
	Call   func(context.Context, ImportRequest) (Imported, error)
	Tell   func(lines int) // receives the number of finished lines
	Distil bool
	Name   string // of the import, for its undo
}

// ImportName returns the name of an import that begins now.
func ImportName() string { return "import-" + time.Now().UTC().Format("20060102-150405") }

// Run sends the lines of a file in order, each batch in one call.
func (im FileImport) Run(ctx context.Context, s Selector, r io.Reader) (done Imported, err error) {
	var batch []Line
	bytes := 0
	times := make(map[uint64]int) // number of equal lines so far, by their hash: equal lines get different IDs
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		answer, err := im.Call(ctx, ImportRequest{Selector: s, Lines: batch, Distil: im.Distil, Import: im.Name})
		if err != nil {
			return err
		}
		done.Kept, done.Known, done.NotTaken = done.Kept+answer.Kept, done.Known+answer.Known, done.NotTaken+answer.NotTaken
		done.Waiting, done.Rules = done.Waiting+answer.Waiting, done.Rules+answer.Rules
		done.Full += answer.Full
		done.Undo = cmp.Or(answer.Undo, done.Undo)
		for _, into := range answer.Into {
			if !slices.Contains(done.Into, into) {
				done.Into = append(done.Into, into)
			}
		}
		batch, bytes = batch[:0], 0
		im.Tell(done.Kept + done.Known)
		return nil
	}
	lines := 0
	done.LeftOut, err = ReadLines(r, func(n int, l Line) error {
		if lines++; lines > maxMessages {
			return fmt.Errorf("the file contains more than %d messages; import it in parts", maxMessages)
		}
		if s.Workspace != "" && (l.Where != "" || l.Group != "") {
			return fmt.Errorf("line %d names its own memory, as the lines of an export do: a workspace has no effect; import the file without --workspace", n)
		}
		b, _ := json.Marshal(l) // strings only
		if len(b) > importBytes {
			return fmt.Errorf("line %d is larger than %d MiB", n, importBytes>>20)
		}
		// Both sides of a turn go in one call.
		whole := len(batch) == 0 || l.turn() == "" || l.turn() != batch[len(batch)-1].turn() || len(batch) > importLines
		if whole && len(batch) >= importLines || bytes+len(b) > importBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		same := xxhash.Sum64(b)
		if n := times[same]; n > 0 {
			l.ID += "#" + strconv.Itoa(n)
		}
		times[same]++
		l.Number = n
		batch, bytes = append(batch, l), bytes+len(b)
		return nil
	})
	if err != nil {
		return done, err
	}
	return done, flush()
}
