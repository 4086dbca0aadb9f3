package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

// agentNotes is a file with notes of an agent, or of a person for one.
type agentNotes struct {
	Client    string `json:"client"`
	File      string `json:"file"`
	Directory string `json:"directory,omitempty"` // of the project; "" for the person's notes
	Lines     int    `json:"lines"`
	LeftOut   string `json:"left_out,omitempty"`

	key   string
	notes transcripts.Notes
}

// readNotes reads the notes of agents for the person, and for the projects of the transcripts and
// the current directory.
func (d *agentImport) readNotes(home transcripts.Home, cfg *config.Config, places *workspace.Places) {
	projects := map[string]*agentProject{}
	dirs := []string{home.Work}
	for _, p := range d.Projects {
		if p.Directory != "" && p.Directory != home.Work && projects[p.Directory] == nil {
			projects[p.Directory], dirs = p, append(dirs, p.Directory)
		}
	}
	for _, n := range home.Notes(dirs) {
		a := agentNotes{Client: n.Client, File: n.File, Directory: n.Dir, Lines: len(n.Lines), notes: n}
		if n.Dir != "" {
			p := &agentProject{Directory: n.Dir}
			p.find(places, cfg)
			a.key, a.LeftOut = p.key, p.LeftOut
		}
		d.Files = append(d.Files, a)
	}
}

// sendNotes imports notes as lines that wait for the person: anyone may have written the files.
func (d *agentImport) sendNotes(ctx context.Context, at *cli.Runner) error {
	for _, a := range d.Files {
		if a.LeftOut != "" {
			continue
		}
		var lines []service.Line
		for _, text := range a.notes.Lines {
			l := card.Line{Kind: card.KindFact, Text: text, State: card.Pending, At: a.notes.At.Unix(), Personal: a.key == "", Workspace: a.key, Program: a.Client, Where: a.Client}
			if m := card.Read(text); m.Alone && len(m.Statements) == 1 && m.Statements[0].Act == card.Rule {
				l.Kind = card.KindRule
			}
			scope := graphiti.ScopeUser
			if a.key != "" {
				scope, l.Where = graphiti.ScopeWorkspace, filepath.Base(a.Directory)
			}
			l.Place = graphiti.Who{Workspace: a.key, Application: a.Client}.Place()
			source, _ := json.Marshal(l) // strings, numbers and booleans only
			lines = append(lines, service.Line{
				Scope: string(scope), Workspace: a.key, Where: service.WhereRule, Content: text, Source: string(source), Timestamp: a.notes.At.UTC().Format(time.RFC3339Nano),
			})
		}
		done, err := cli.Call(ctx, at, service.Import, service.ImportRequest{Lines: lines})
		if err != nil {
			return fmt.Errorf("import %s: %w", a.File, err)
		}
		if d.Waiting += done.Waiting; done.Full > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: left out %s: too many wait; decide on some first: graphiti-proxy memory pending", a.File, terminal.Count(done.Full, "line")))
		}
	}
	return nil
}

func (d *agentImport) printNotes(w io.Writer) {
	if len(d.Files) == 0 {
		return
	}
	fmt.Fprintln(w)
	var t terminal.Table
	t.Row("CLIENT", "FILE WITH NOTES", "LINES", "LEFT OUT")
	for _, a := range d.Files {
		t.Row(a.Client, a.File, a.Lines, a.LeftOut)
	}
	t.Print(w)
	if d.Waiting > 0 {
		fmt.Fprintf(w, "%s of notes now wait for your confirmation, in their project: graphiti-proxy memory pending\n", terminal.Count(d.Waiting, "line"))
	}
}
