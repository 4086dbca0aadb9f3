package workspace

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// commandsFresh is the time after which the files of a directory are read again.
	commandsFresh = 10 * time.Second

	maxCommandDirs  = 256 // cached directories
	maxCommandFiles = 256 // files of a directory
	maxCommandFile  = 64 << 10
	maxCommandBytes = 1 << 20 // of all files of a directory
	maxCommandDepth = 4       // below the dot-directory

	// Hold compares the first maxCommandLine bytes of a line, because arguments may follow.
	// It ignores lines with less than minCommandLine bytes.
	minCommandLine = 20
	maxCommandLine = 40
)

// Commands checks whether a message is the content of a command, prompt or skill file.
// Several clients send such a file as if the person had typed it. All clients store these
// files as Markdown or TOML in a directory of the project with a leading dot, so no list
// of clients is needed. The zero value is ready to use. It is safe for concurrent use.
type Commands struct {
	mu    sync.Mutex // protects known, and every commandFiles
	known map[string]*commandFiles
}

type commandFiles struct {
	texts []string
	found time.Time     // when texts were read; zero if never
	read  chan struct{} // closed at the end of the current read; nil if there is none
}

// Hold reports whether a file in a project's dot-directories contains a line of the
// message. It also returns true if the file system does not answer within wait.
func (c *Commands) Hold(dir, message string, wait time.Duration) bool {
	texts, ok := c.files(filepath.Clean(dir), wait)
	if !ok {
		return true
	}
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		if len(line) < minCommandLine {
			continue
		}
		start := line[:min(len(line), maxCommandLine)]
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, start) }) {
			return true
		}
	}
	return false
}

// files returns the texts of a directory's files. ok is false if they were never read.
func (c *Commands) files(dir string, wait time.Duration) (texts []string, ok bool) {
	c.mu.Lock()
	one := c.known[dir]
	if one == nil {
		if c.known == nil || len(c.known) >= maxCommandDirs {
			c.known = make(map[string]*commandFiles)
		}
		one = &commandFiles{}
		c.known[dir] = one
	}
	if one.read == nil && (one.found.IsZero() || time.Since(one.found) > commandsFresh) {
		one.read = make(chan struct{})
		go c.readFiles(dir, one) // ends when the file system has answered; one for a directory
	}
	read := one.read
	c.mu.Unlock()
	if read != nil {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-read:
		case <-t.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return one.texts, !one.found.IsZero()
}

func (c *Commands) readFiles(dir string, one *commandFiles) {
	texts := readCommands(dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	one.texts, one.found = texts, time.Now()
	close(one.read)
	one.read = nil
}

// readCommands returns the texts of the files that may be commands, within the limits. It
// skips files that it cannot read.
func readCommands(dir string) (texts []string) {
	entries, _ := os.ReadDir(dir)
	left, files := maxCommandBytes, 0
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), ".") || e.Name() == ".git" {
			continue
		}
		top := filepath.Join(dir, e.Name())
		_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(top, path)
			switch ext := filepath.Ext(path); {
			case err != nil:
				return fs.SkipDir
			case e.IsDir() && strings.Count(rel, string(filepath.Separator)) >= maxCommandDepth:
				return fs.SkipDir
			case !e.Type().IsRegular() || ext != ".md" && ext != ".toml":
				return nil
			}
			if files++; files > maxCommandFiles || left <= 0 {
				return fs.SkipAll
			}
			text := readStart(path, min(left, maxCommandFile))
			left -= len(text)
			texts = append(texts, text)
			return nil
		})
	}
	return texts
}

// readStart returns the first bytes of a file, at most n.
func readStart(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, int64(n)))
	return string(b)
}
