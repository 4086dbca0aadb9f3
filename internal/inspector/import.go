package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// importing is the page with the form of an import, and with its result.
type importing struct {
	whose
	Name   string
	Most   int // MiB
	Action string
	Done   *imported
}

// imported is the result of an import. Scripts receive one line of JSON for each step.
type imported struct {
	Lines  int      `json:"lines"`          // processed lines
	Says   []string `json:"says,omitempty"` // the result
	Error  string   `json:"error,omitempty"`
	Remedy string   `json:"remedy,omitempty"`
	Done   bool     `json:"done,omitempty"`
}

// linesExample is an example of a file of JSON Lines.
const linesExample = `{"role": "user", "content": "My cat is called Miso.", "timestamp": "2026-11-21T09:00:00Z", "session": "pets"}
{"role": "assistant", "content": "Noted.", "timestamp": "2026-11-21T09:00:05Z", "session": "pets"}`

const (
	importMost = 512 // MiB of a file; larger ones are for the command
	progress   = "application/jsonl"
)

func (v *visit) importForm() error {
	if v.p.o.Host.Now().Memory == nil {
		return errOff
	}
	if known, err := v.choosePerson("Import"); !known {
		return err
	}
	return v.show("Import", v.importing(nil).main(), importScripts())
}

func (v *visit) importing(done *imported) *importing {
	i := &importing{whose: v.asked(), Most: importMost, Done: done}
	i.Action = i.at("/memory/import")
	if i.whose != (whose{}) {
		i.Name = i.whose.selector().Whose()
	}
	return i
}

// asked returns the person in the address: the body of the form is the file.
func (v *visit) asked() whose {
	q := v.r.URL.Query()
	return whose{q.Get("user"), q.Get("credential")}
}

// importFile imports an uploaded file. A script that accepts JSON Lines receives each step.
func (v *visit) importFile() error {
	c := http.NewResponseController(v.w)
	name, err := v.received()
	if name != "" {
		defer func() { _ = os.Remove(name) }() // the system empties the folder later
	}
	if err != nil {
		return err
	}
	// The import continues after the browser has left: the file is complete.
	v.r = v.r.WithContext(context.WithoutCancel(v.r.Context()))
	steps := json.NewEncoder(io.Discard)
	follows := strings.Contains(v.r.Header.Get("Accept"), progress)
	if follows {
		v.w.Header().Set("Content-Type", progress)
		steps = json.NewEncoder(v.w)
	}
	last := time.Time{}
	done, err := v.importFrom(name, func(lines int) {
		if time.Since(last) < 200*time.Millisecond {
			return
		}
		last = time.Now()
		_ = errors.Join(steps.Encode(imported{Lines: lines}), c.Flush())
	})
	if err != nil {
		_, f := v.judge(err)
		done.Error, done.Remedy = f.Says, f.Remedy
	}
	done.Done = true
	if follows {
		_ = steps.Encode(done)
		return nil
	}
	status := http.StatusOK
	if err != nil {
		status, _ = v.judge(err)
	}
	return v.render(status, "Import", v.importing(&done).main(), importScripts())
}

// importFrom imports a local file.
func (v *visit) importFrom(name string, tell func(lines int)) (imported, error) {
	file, err := service.OpenImport(name)
	if err != nil {
		return imported{}, failed{service.OfInput, errors.New("the archive cannot be read or has no conversations.json; to do: send the original export, or JSON Lines")}
	}
	defer file.Close()
	im := service.FileImport{Tell: tell, Call: func(_ context.Context, in service.ImportRequest) (service.Imported, error) {
		return change(v, service.Import, func(to *service.ImportRequest) { *to = in })
	}}
	got, err := im.Run(v.r.Context(), v.asked().selector(), file)
	done := imported{Lines: got.Kept + got.Known}
	for _, line := range got.Says(file.Omitted) {
		done.Says = append(done.Says, sentence(line))
	}
	if err != nil {
		var of failed
		if !errors.As(err, &of) { // the file cannot be read
			err = failed{service.OfInput, err}
		}
		return done, err
	}
	return done, nil
}

// received writes the upload to a local file that only its user can read, and returns the
// name. The caller deletes the file.
func (v *visit) received() (name string, err error) {
	part, err := v.sentFile()
	if err != nil {
		return "", failed{service.OfInput, err}
	}
	defer part.Close()
	f, err := os.CreateTemp("", "graphiti-proxy-import-*")
	if err != nil {
		return "", failed{service.OfFiles, fmt.Errorf("store the file during the import: %w", err)}
	}
	n, err := io.Copy(f, io.LimitReader(part, importMost<<20+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return f.Name(), failed{service.OfInput, fmt.Errorf("the file did not arrive: %w", err)}
	}
	switch {
	case n == 0:
		return f.Name(), failed{service.OfInput, errors.New("no file was chosen, or it is empty; to do: choose one and try again")}
	case n > importMost<<20:
		return f.Name(), failed{service.OfInput, fmt.Errorf("the file is larger than %d MiB; to do: import it with graphiti-proxy memory import", importMost)}
	}
	return f.Name(), nil
}

// sentFile returns the file in the form.
func (v *visit) sentFile() (io.ReadCloser, error) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, importMost<<20+1<<20)
	parts, err := v.r.MultipartReader()
	for err == nil {
		var part *multipart.Part
		if part, err = parts.NextPart(); err == nil && part.FormName() == "file" {
			return part, nil
		}
	}
	return nil, errors.New("no file was sent; to do: choose one and try again")
}
