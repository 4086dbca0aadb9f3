package inspector

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
)

// importing is the page with the form of an import, and with its result.
type importing struct {
	whose
	Name   string
	Most   int // MiB
	Action string
	Done   *imported
}

// imported is the result of an import.
type imported struct {
	Lines         int // processed lines
	Says          []string
	Undo          string // ID of the change
	Error, Remedy string
}

const importMost = 512 // MiB of a file; larger ones are for the command

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
	i := &importing{whose: v.whose(), Most: importMost, Done: done}
	i.Action = i.at("/memory/import")
	if i.whose != (whose{}) {
		i.Name = i.whose.selector().Whose()
	}
	return i
}

// importFile imports an uploaded file. The import continues after the browser has left, because the
// file is complete.
func (v *visit) importFile() error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, importMost<<20)
	if err := v.r.ParseMultipartForm(1 << 20); err != nil { // the rest of the file is on disk
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			err = fmt.Errorf("the file is larger than %d MiB; to do: import it with graphiti-proxy memory import", importMost)
		}
		return failed{service.OfInput, fmt.Errorf("the file did not arrive: %w", err)}
	}
	defer func() { _ = v.r.MultipartForm.RemoveAll() }() // the system empties the folder later
	v.r = v.r.WithContext(context.WithoutCancel(v.r.Context()))
	done, err := v.importSent()
	status := http.StatusOK
	if err != nil {
		var f errorPage
		status, f = v.judge(err)
		done.Error, done.Remedy = f.Says, f.Remedy
	}
	return v.render(status, "Import", v.importing(&done).main(), importScripts())
}

func (v *visit) importSent() (done imported, err error) {
	sent, head, err := v.r.FormFile("file")
	if err != nil || head.Size == 0 {
		return done, failed{service.OfInput, errors.New("no file was sent, or it is empty; to do: choose one and try again")}
	}
	file, err := transcripts.Read(sent, head.Size)
	if err != nil {
		return done, failed{service.OfInput, errors.New("the archive cannot be read or has no conversations.json; to do: send the original export, or JSON Lines")}
	}
	defer file.Close()
	im := service.FileImport{Lines: transcripts.Lines(file), Name: service.ImportName(), Tell: func(int) {}, Call: func(_ context.Context, in service.ImportRequest) (service.Imported, error) {
		return call(v, service.Import, func(to *service.ImportRequest) { *to = in }, nil)
	}}
	got, err := im.Run(v.r.Context(), v.whose().selector())
	done.Lines, done.Undo = got.Kept+got.Known, got.Undo
	for _, line := range got.Says(file.Omitted) {
		done.Says = append(done.Says, sentence(line))
	}
	if of := (failed{}); err != nil && !errors.As(err, &of) { // the file cannot be read
		err = failed{service.OfInput, err}
	}
	return done, err
}
