package gemini

import (
	"bytes"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// placeIn reads, in the opening of Gemini CLI's conversations, what stands
// before the names of files. The first of several directories is the one that
// it was started in; empty: which one that is cannot be told. ok is false where
// it names none.
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
