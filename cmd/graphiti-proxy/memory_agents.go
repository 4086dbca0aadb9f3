package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/cmd/internal/cli"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
	"github.com/graphiti-proxy/graphiti-proxy/internal/transcripts"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

const (
	pastTurns = 1000    // in one call
	pastBytes = 4 << 20 // of those turns
)

// agentProject counts the conversations of one client in one project.
type agentProject struct {
	Client        string    `json:"client"`
	Directory     string    `json:"directory"`
	Conversations int       `json:"conversations"`
	Turns         int       `json:"turns"`
	New           int       `json:"new"` // turns that the memory lacks; 0 unless the import is a dry run
	From          time.Time `json:"from"`
	To            time.Time `json:"to"`
	File          string    `json:"file,omitempty"`     // transcript in the directory
	LeftOut       string    `json:"left_out,omitempty"` // reason for not importing it

	key      string
	repo     workspace.Repo
	sessions map[string]bool
	turns    []service.PastTurn
}

// agentImport is the result of memory import --agents.
type agentImport struct {
	Import   string          `json:"import,omitempty"` // "" for a dry run
	Projects []*agentProject `json:"projects"`
	Kept     int             `json:"kept"`
	Known    int             `json:"known"`
	Invalid  int             `json:"invalid,omitempty"`
	Files    []agentNotes    `json:"files,omitempty"` // with notes of agents
	Waiting  int             `json:"waiting,omitempty"`
	Notes    []string        `json:"notes,omitempty"`

	dry bool // count only
}

// importAgents imports the transcripts of coding agents, or only lists them if dry.
func importAgents(c *cobra.Command, at *cli.Runner, dry bool) error {
	cfg, err := cli.LoadConfig(c)
	if err != nil {
		return err
	}
	if cfg.Identity.Mode == "multi" {
		return errors.New("identity.mode is multi: the transcripts of a machine belong to one person; import them at that person's own proxy")
	}
	m, err := machineOf(c, cfg)
	if err != nil {
		return err
	}
	done := agentImport{Projects: []*agentProject{}}
	if !dry {
		done.Import = service.ImportName()
		fmt.Fprintf(c.ErrOrStderr(), "importing as %s\n", done.Import)
	}
	progress := terminal.NewProgress(c.ErrOrStderr(), "transcript", 0)
	home := transcripts.Home{Dir: m.Home, Work: m.Dir, Env: m.Env}
	all := home.Read(progress.Show)
	progress.End()
	places := workspace.NewPlaces()
	if !dry { // as for live requests, the oldest directory with a remote gets its project
		places.Projects = workspace.OpenProjects(filepath.Join(cfg.DataDir, projectsFile), slog.New(slog.DiscardHandler))
		places.Projects.SetClones(cfg.Workspace.Clones)
	}
	turns := done.sort(all, cfg, places)
	done.readNotes(home, cfg, places)
	if dry {
		if err := done.countNew(c.Context(), at); err != nil {
			return err
		}
	} else if len(turns) > 0 {
		progress = terminal.NewProgress(c.ErrOrStderr(), "turn", 0)
		err := done.send(c.Context(), at, turns, progress)
		if progress.End(); err != nil {
			return fmt.Errorf("%w; %s imported, run the command again to continue", err, terminal.Count(done.Kept, "turn"))
		}
	}
	if !dry {
		if err := done.sendNotes(c.Context(), at); err != nil {
			return err
		}
	}
	return cli.Output(c, &done, func(w io.Writer) { done.print(w, dry) })
}

// sort assigns the turns to projects. It returns those to import, oldest first.
func (d *agentImport) sort(all []transcripts.Found, cfg *config.Config, places *workspace.Places) (turns []service.PastTurn) {
	projects, commands := make(map[string]*agentProject), workspace.Commands{}
	var list []transcripts.Exchange
	for i := range all {
		list = append(list, all[i].Turns...)
		d.note(&all[i])
	}
	slices.SortStableFunc(list, func(a, b transcripts.Exchange) int { return a.At.Compare(b.At) })
	for i := range list {
		t := &list[i]
		name := t.Client + "\x00" + t.Dir
		p := projects[name]
		if p == nil {
			p = &agentProject{Client: t.Client, Directory: t.Dir, File: t.File, From: t.At, sessions: make(map[string]bool)}
			p.find(places, cfg)
			projects[name], d.Projects = p, append(d.Projects, p)
		}
		session := t.Session
		if !t.OnWire {
			session = t.Client + "-" + t.Session
		}
		if !p.sessions[session] {
			p.sessions[session] = true
			p.Conversations++
		}
		p.Turns, p.To = p.Turns+1, t.At
		if p.LeftOut == "" {
			p.turns = append(p.turns, service.PastTurn{
				Client: t.Program, Session: session, Workspace: p.key, User: cmp.Or(commands.Words(&p.repo, t.Words, time.Second), t.Words), Assistant: t.Answer, Keys: t.Keys,
				ID: t.ID, Said: timeText(t.At), Answered: timeText(t.Answered),
			})
			turns = append(turns, p.turns[len(p.turns)-1])
		}
	}
	slices.SortStableFunc(d.Projects, func(a, b *agentProject) int { return strings.Compare(a.Client, b.Client) })
	return turns
}

// timeText returns a time for a call, or "" if it is unknown.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// note adds the parts of a client's files that cannot be imported.
func (d *agentImport) note(f *transcripts.Found) {
	for _, n := range []struct {
		n          int
		what, rest string
	}{{f.Unfinished, "unanswered message", ""}, {f.TakenBack, "message", " that you took back"}, {f.Subagents, "file", " of subagents"}, {f.Unread, "file", " without a readable turn"}, {f.Damaged, "damaged line", ""}, {f.Skipped, "overlong line", ""}} {
		if n.n > 0 {
			d.Notes = append(d.Notes, f.Client+": left out "+terminal.Count(n.n, n.what)+n.rest)
		}
	}
	for _, problem := range f.Problems {
		d.Notes = append(d.Notes, f.Client+": "+problem)
	}
}

// find finds the project of a directory, by the rules for live requests.
func (p *agentProject) find(places *workspace.Places, cfg *config.Config) {
	if p.Directory == "" {
		p.LeftOut = "the directory is unknown"
		return
	}
	repo, ok := places.Find(p.Directory)
	allowed := rules(cfg)
	switch p.key, p.repo = repo.Key(), repo; {
	case !ok || repo.Dir == "":
		p.LeftOut = "the directory is gone"
	case !allowed.Remembers(repo, p.key):
		p.LeftOut = "the project is excluded from memory"
	case p.File != "" && workspace.Tracks(p.File):
		p.LeftOut = "git tracks the file, so others may have written it"
	}
}

// countNew counts the turns of each project that the memory lacks.
func (d *agentImport) countNew(ctx context.Context, at *cli.Runner) error {
	for _, p := range d.Projects {
		counted := agentImport{Import: "import-dry", dry: true}
		if err := counted.send(ctx, at, p.turns, terminal.NewProgress(io.Discard, "turn", 0)); err != nil {
			return err
		}
		p.New = counted.Kept
	}
	return nil
}

// send imports turns in calls of bounded size.
func (d *agentImport) send(ctx context.Context, at *cli.Runner, turns []service.PastTurn, progress *terminal.Progress) error {
	for len(turns) > 0 {
		n, bytes := 0, 0
		for n < len(turns) && n < pastTurns && (n == 0 || bytes < pastBytes) {
			bytes += len(turns[n].User) + len(turns[n].Assistant)
			n++
		}
		answer, err := cli.Call(ctx, at, service.ImportTurns, service.TurnsImport{Import: d.Import, Turns: turns[:n], Dry: d.dry})
		if err != nil {
			return err
		}
		d.Kept, d.Known, d.Invalid = d.Kept+answer.Kept, d.Known+answer.Known, d.Invalid+answer.NotTaken
		progress.Show(d.Kept + d.Known)
		turns = turns[n:]
	}
	return nil
}

func (d *agentImport) print(w io.Writer, dry bool) {
	if len(d.Projects)+len(d.Notes)+len(d.Files) == 0 {
		fmt.Fprintln(w, "no transcripts of coding agents were found on this machine")
		return
	}
	var t terminal.Table
	t.Row("CLIENT", "PROJECT", "CONVERSATIONS", "TURNS", terminal.If(dry, "NEW"), "FROM", "TO", "LEFT OUT")
	total := 0
	for _, p := range d.Projects {
		t.Row(p.Client, p.Directory, p.Conversations, p.Turns, terminal.If(dry, p.New), p.From.Local().Format(time.DateOnly), p.To.Local().Format(time.DateOnly), p.LeftOut)
		if p.File != "" && p.LeftOut == "" {
			d.Notes = append(d.Notes, p.Client+" wrote "+p.File+": anyone who gave you the directory may have written it, too")
		}
		if p.LeftOut == "" {
			total += p.New
		}
	}
	t.Print(w)
	d.printNotes(w)
	for _, n := range d.Notes {
		fmt.Fprintln(w, terminal.Printable(n))
	}
	if dry && slices.ContainsFunc(d.Projects, func(p *agentProject) bool { return p.Client == "claude-code" }) {
		fmt.Fprintln(w, "claude-code deletes transcripts after 30 days, unless its setting cleanupPeriodDays is higher")
	}
	if dry {
		fmt.Fprintf(w, "%s; this imports them: graphiti-proxy memory import --agents --yes\n", terminal.Count(total, "new turn"))
		return
	}
	fmt.Fprintf(w, "%s imported, %d known (present or forgotten)\n", terminal.Count(d.Kept, "turn"), d.Known)
	if d.Invalid > 0 {
		fmt.Fprintf(w, "%s left out: no valid session or time\n", terminal.Count(d.Invalid, "turn"))
	}
	if d.Kept > 0 {
		fmt.Fprintf(w, "to take it back: graphiti-proxy memory forget --import %s\n", d.Import)
	}
}
