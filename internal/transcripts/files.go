package transcripts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	maxLine = 8 << 20 // longer lines hold images and copies of histories
	maxFile = 1 << 30 // bytes read from one file, decompressed
)

// client describes where a client stores conversations.
type client struct {
	name   string
	shown  string   // name in its requests
	Moves  string   // variable that moves Dir
	Dir    string   // below home, or below XDG_DATA_HOME if XDG
	XDG    bool     // Dir is below the XDG data directory
	Files  []string // patterns below Dir
	OnWire bool     `yaml:"onWire"` // requests state the session's id

	Notes        []string // patterns of files with notes, below Dir
	SlugNotes    []string `yaml:"slugNotes"`    // patterns below the folder of a project in Dir
	ProjectNotes []string `yaml:"projectNotes"` // names of files in a project's directory

	inProject bool // its files are in the directories of projects

	read func(f *source, t *turns) error
}

// readers read the transcripts of clients.
var readers = map[string]func(f *source, t *turns) error{
	"claude-code": readClaude, "codex": readCodex, "opencode": readOpenCode, "kilo": readOpenCode, "gemini": readGemini, "qwen": readQwen,
	"copilot": readCopilot, "cline": readCline, "continue": readContinue, "kimi": readKimi, "pi": readPi,
}

var clients = func() (all []client) {
	dialect.EachClient(func(file string, decode func(into any)) {
		c := client{name: file, read: readers[file]}
		decode(&struct{ Transcripts *client }{&c})
		decode(&struct{ Name *string }{&c.shown})
		if c.shown, _, _ = strings.Cut(c.shown, ","); c.read != nil {
			all = append(all, c)
		}
	})
	return all
}()

// aiderFile is aider's transcript in a project's directory.
const aiderFile = ".aider.chat.history.md"

// trialDir begins the names of directories in which connect tries a client.
const trialDir = "graphiti-proxy-trial"

// Home is the place of transcripts.
type Home struct {
	Dir  string // the person's home
	Work string // current directory
	Env  func(name string) string
}

// Found is the content of the transcripts of one client.
type Found struct {
	Client     string
	Files      int
	Turns      []Exchange
	Unfinished int      // turns without an answer
	TakenBack  int      // messages that the person took back
	Subagents  int      // files of subagents
	Unread     int      // files without a readable turn
	Damaged    int      // lines that cannot be read
	Skipped    int      // lines that are too long
	Problems   []string // files that cannot be read
}

// Read returns the conversations of all clients. note is called after each file.
func (h Home) Read(note func(files int)) (all []Found) {
	files, projects := 0, []string{h.Work}
	for i := range clients {
		c := &clients[i]
		f := h.read(c, h.paths(c), func() { files++; note(files) })
		if f.Files == 0 {
			continue
		}
		for _, t := range f.Turns {
			if t.Dir != "" && !slices.Contains(projects, t.Dir) {
				projects = append(projects, t.Dir)
			}
		}
		all = append(all, f)
	}
	var paths []string
	for _, dir := range projects {
		paths = append(paths, filepath.Join(dir, aiderFile))
	}
	aider := &client{name: "aider", shown: "aider", inProject: true, read: readAider}
	if f := h.read(aider, paths, func() { files++; note(files) }); f.Files > 0 {
		all = append(all, f)
	}
	return all
}

func (h Home) dirOf(c *client) string {
	switch {
	case c.Moves != "" && h.Env(c.Moves) != "":
		return h.Env(c.Moves)
	case c.XDG && h.Env("XDG_DATA_HOME") != "":
		return filepath.Join(h.Env("XDG_DATA_HOME"), c.Dir)
	case c.XDG:
		return filepath.Join(h.Dir, ".local", "share", c.Dir)
	}
	return filepath.Join(h.Dir, c.Dir)
}

// paths returns the files of a client, in the order of their names.
func (h Home) paths(c *client) (paths []string) {
	dir := h.dirOf(c)
	for _, pattern := range c.Files {
		found, err := filepath.Glob(filepath.Join(escape(dir), filepath.FromSlash(pattern)))
		if err == nil { // the pattern is valid
			paths = append(paths, found...)
		}
	}
	return paths
}

// escape protects the marks of patterns in a directory's name.
func escape(dir string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(dir)
}

// read reads files of a client. It skips links: they may lead anywhere.
func (h Home) read(c *client, paths []string, note func()) Found {
	found := Found{Client: c.name}
	var files [][]Exchange
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || filepath.Base(path) == "sessions.json" { // an index
			continue
		}
		s := &source{path: path, modified: info.ModTime(), found: &found}
		t := &turns{Exchange: Exchange{Client: c.name, Program: c.shown, OnWire: c.OnWire}}
		if c.inProject {
			t.File = path
		}
		before := found.TakenBack + found.Subagents
		if err := c.readFile(s, t); err != nil {
			found.Problems = append(found.Problems, fmt.Sprintf("%s: %v", path, err))
		}
		list, unfinished, takenBack := t.finished()
		found.Files, found.Unfinished, found.TakenBack = found.Files+1, found.Unfinished+unfinished, found.TakenBack+takenBack
		if len(list)+unfinished == 0 && found.TakenBack+found.Subagents == before {
			found.Unread++
		}
		files = append(files, list)
		note()
	}
	found.Turns = slices.DeleteFunc(Merge(files), func(t Exchange) bool { return strings.HasPrefix(filepath.Base(t.Dir), trialDir) })
	return found
}

// readFile reads one file. A panic is an error of that file: a file may contain anything.
func (c *client) readFile(s *source, t *turns) (err error) {
	defer func() {
		if recover() != nil { // its value may contain texts
			err = errors.New("its content is not understood")
		}
	}()
	return c.read(s, t)
}

// source is one file.
type source struct {
	path     string
	modified time.Time
	found    *Found
}

func (s *source) ofSubagent() error {
	s.found.Subagents++
	return nil
}

func (s *source) text() ([]byte, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(transform.NewReader(f, unicode.BOMOverride(transform.Nop)), 64<<20))
}

// whole returns the content of a file with one JSON document.
func (s *source) whole() (doc gjson.Result, err error) {
	text, err := s.text()
	if err == nil && !gjson.ValidBytes(text) {
		err = errors.New("it is not JSON, or too long")
	}
	return gjson.ParseBytes(text), err
}

// lines calls each for the JSON objects in the lines of a file. has selects lines by their
// text before they are parsed.
func (s *source) lines(has func(line []byte) bool, each func(record gjson.Result)) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(s.path, ".zst") {
		d, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer d.Close()
		r = d
	}
	in := bufio.NewReaderSize(io.LimitReader(transform.NewReader(r, unicode.BOMOverride(transform.Nop)), maxFile), 1<<20)
	for {
		line, isLong, err := readLine(in)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case isLong:
			s.found.Skipped++
		default:
			s.records(line, err != nil, has, each)
		}
		if err != nil {
			return nil
		}
	}
}

// readLine returns a line, or reports that it is too long.
func readLine(in *bufio.Reader) (line []byte, isLong bool, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		if isLong = isLong || len(line)+len(piece) > maxLine; isLong {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, isLong, err
		}
	}
}

// starts are the beginnings of records: a damaged line may contain several.
var starts = [][]byte{[]byte(`{"type":`), []byte(`{"parentUuid":`), []byte(`{"timestamp":`), []byte(`{"uuid":`)}

// records calls each for the records in a line. isLast marks a line without an end, which
// the client may still be writing.
func (s *source) records(line []byte, isLast bool, has func([]byte) bool, each func(gjson.Result)) {
	line = bytes.Trim(line, " \t\r\n\x00")
	if len(line) == 0 || !has(line) {
		return
	}
	if gjson.ValidBytes(line) {
		each(gjson.ParseBytes(line))
		return
	}
	if !isLast {
		s.found.Damaged++
	}
	for len(line) > 0 {
		next := len(line)
		for _, start := range starts {
			if i := bytes.Index(line[1:], start); i >= 0 {
				next = min(next, i+1)
			}
		}
		if piece := bytes.Trim(line[:next], " \x00"); gjson.ValidBytes(piece) {
			each(gjson.ParseBytes(piece))
		}
		line = line[next:]
	}
}

// timeOf returns the time in a record, in RFC 3339 or Unix milliseconds.
func timeOf(v gjson.Result) time.Time {
	if v.Type == gjson.Number {
		return time.UnixMilli(v.Int()).UTC()
	}
	t, _ := time.Parse(time.RFC3339, v.Str)
	return t.UTC()
}
