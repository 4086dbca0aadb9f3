package inspector

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var staticFiles embed.FS

// kinds are the content types by file extension: the system's own table differs between
// machines.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// ServeStatic serves the styles, scripts and icons below /static/ to any client.
func (p *Pages) ServeStatic(w http.ResponseWriter, r *http.Request) {
	body, err := staticFiles.ReadFile(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(body)
	h := w.Header()
	h.Set("Cache-Control", "no-cache") // another version of the proxy has other files with the same names
	h.Set("Content-Type", kinds[path.Ext(r.URL.Path)])
	h.Set("ETag", fmt.Sprintf(`"%x"`, sum[:8]))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
