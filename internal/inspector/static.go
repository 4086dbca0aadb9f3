package inspector

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var staticFiles embed.FS

// file is a file below /static/.
type file struct {
	kind string // its Content-Type
	etag string
	body []byte
}

// kinds are the content types by file extension: the system's own table differs between
// machines.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".md": "text/plain; charset=utf-8", "": "text/plain; charset=utf-8",
}

func readStatic() (map[string]file, error) {
	files := make(map[string]file)
	err := fs.WalkDir(staticFiles, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := staticFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files["/"+name] = file{kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`, body}
		return nil
	})
	return files, err
}

// ServeStatic serves the styles, scripts and icons below /static/ to any client.
func (p *Pages) ServeStatic(w http.ResponseWriter, r *http.Request) {
	f, ok := p.files[r.URL.Path]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	secure(w)
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // another version of the proxy has other files with the same names
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.body) // fails only after the browser has left
}
