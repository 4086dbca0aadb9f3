package gemini

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// placeIn returns the directory in which Gemini CLI was started. Its conversations open
// with a list of directories, that one first, and then the names of files. dir is empty if
// it is unclear; ok is false if there is no list.
func placeIn(opening []byte) (dir string, ok bool) {
	_, list, ok := bytes.Cut(opening, []byte("\n- **Workspace Directories:**\n"))
	if !ok {
		return "", false
	}
	list, _, whole := bytes.Cut(list, []byte("\n- **Directory Structure:**\n"))
	for n, line := range bytes.Split(list, []byte{'\n'}) {
		name, item := bytes.CutPrefix(line, []byte("  - "))
		d := dialect.CleanDirectory(string(name))
		if !whole || !item || d == "" {
			return "", true // a directory's name may hold line feeds
		}
		if n == 0 {
			dir = d
		}
	}
	return dir, true
}
