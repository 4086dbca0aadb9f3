package transcripts

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// File is an open file to import.
type File struct {
	io.ReadCloser
	Size    int64    // in bytes, or 0 if it is unknown
	Omitted []string // other JSON files of an archive or a folder, which are not read
}

// Open opens a file to import, or the conversations in an archive or a folder; - is
// standard input.
func Open(name string) (*File, error) {
	if name == "-" {
		return &File{ReadCloser: io.NopCloser(os.Stdin)}, nil
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
		return &File{ReadCloser: f}, nil
	}
	return Read(f, info.Size())
}

// Read returns a file of a size to import, or the conversations in it. It closes the file
// after an error.
func Read(f interface {
	io.ReadCloser
	io.ReaderAt
}, size int64) (*File, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return &File{ReadCloser: f, Size: size}, nil //nolint:nilerr // any other file contains lines or an export
	}
	return readArchive(f, z)
}

func readArchive(f io.Closer, files fs.FS) (*File, error) {
	in := &archived{closers: []io.Closer{f}}
	err := in.add(files, 0)
	if err == nil && len(in.readers) == 0 {
		err = errors.New("it contains no conversations.json")
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	in.Reader = io.MultiReader(in.readers...)
	return &File{in, in.size, in.omitted}, nil
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
