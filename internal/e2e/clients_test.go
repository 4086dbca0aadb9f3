//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// journey is a client, with the steps of TestClients that it supports without a terminal.
type journey struct {
	coder
	needs    string // package of the client, below .cache
	attaches bool   // the client sends the contents of a file that a prompt names

	// compact compacts the newest conversation. It is nil if the client needs a terminal
	// for that.
	compact func(t *testing.T, url, home, repo string)

	once bool // the client needs a terminal to continue a conversation
}

// Texts of the journey. The text of the file must not be remembered as the person's words.
const (
	goOn      = "Go on."
	asking    = "What is the staging database called?"
	portAsked = "And which port does it listen on?"
	host      = "Thanks, and the host is called Luna."
	notes     = "notes.txt"
	secret    = "the quokka sleeps in the attic"
	summed    = "The staging database was named, and a port was asked for, which nobody knows yet."
	gadgets   = "workspace_github_repo_github_com_acme_gadgets-6562fe602d823a42"
	columnOK  = "yes"
)

// journeyModel returns a model like coderModel that also writes summaries, and gives a
// different answer each time.
func journeyModel() func(proxytest.Input) proxytest.Reply {
	var mu sync.Mutex
	n := 0
	return func(c proxytest.Input) proxytest.Reply {
		asked := ""
		for _, m := range c.Messages {
			if m.Role == "user" {
				asked = m.Text
			}
		}
		if summing.MatchString(asked) || summing.MatchString(c.Messages[0].Text[:min(200, len(c.Messages[0].Text))]) {
			tag := "summary"
			if strings.Contains(asked, "<state_snapshot>") {
				tag = "state_snapshot" // the tag that the client asks for
			}
			return proxytest.Reply{Text: "<" + tag + ">\n" + summed + "\n</" + tag + ">"}
		}
		r := coderModel(c)
		if r.Text == "Understood." {
			mu.Lock()
			defer mu.Unlock()
			n++
			r.Text = fmt.Sprintf("Understood. I will keep that in mind, number %d of what I was told.", n)
		}
		return r
	}
}

var summing = regexp.MustCompile(`(?i)(create|provide|generate)[^.\n]{0,40} summary|summarize conversation chunk|summarization assistant|summarizes (?:internal chat|a conversation)|distilling chat history`)

// blockQuoted is blockInJSON for facts that may contain quotation marks.
var blockQuoted = regexp.MustCompile(`\{(?:"type":"(?:input_)?text",)?"text":"<graphiti_memory>(?:[^"\\]|\\.)*?</graphiti_memory>\\n\\n"\},|<graphiti_memory>(?:[^"\\]|\\.)*?</graphiti_memory>\\n\\n`)

// tap is a server between a client and the proxy that records the client's requests.
type tap struct {
	url  string
	mu   sync.Mutex // guards the fields below
	sent map[string]int

	memory []string // X-Graphiti-Memory of each answer, without numbers
}

var numbers = regexp.MustCompile(`\w+=\d+(; |$)`)

func newTap(t *testing.T, target string) *tap {
	u, err := url.Parse(target)
	must(t, err)
	p := &tap{sent: make(map[string]int)}
	way := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, ModifyResponse: func(r *http.Response) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.memory = append(p.memory, numbers.ReplaceAllString(r.Header.Get("X-Graphiti-Memory"), ""))
		return nil
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		p.sent[string(b)]++
		p.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		way.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// differs returns a description of each request that the model refused or that differs from
// the client's by more than the block.
func (p *tap) differs(model *proxytest.Provider) (all []string) {
	for _, r := range model.Requests() {
		if r.Refused != "" {
			all = append(all, r.Path+" was refused: "+r.Refused)
		}
		if plain := blockQuoted.ReplaceAllString(string(r.Body), ""); p.sent[plain] == 0 {
			all = append(all, "the client did not send "+r.Path+" "+plain[:min(300, len(plain))])
		}
	}
	return all
}

// episode is a stored message of a turn.
type episode struct{ Role, Text, Source string }

func (e *episode) session() string {
	var s struct{ Session string }
	_ = json.Unmarshal([]byte(e.Source), &s)
	return s.Session
}

func (w *world) episodes(t *testing.T, group string) (all []episode) {
	t.Helper()
	for line := range strings.Lines(w.export(t, group)) {
		var e episode
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Role != "" { // otherwise a statement about the session
			all = append(all, e)
		}
	}
	return all
}

// TestClients takes real clients through the same steps: a turn, a second turn with an
// attached file, a compaction and a turn after it, a second conversation with a tool call,
// and another project. The results of a client are its row of docs/clients.md.
func TestClients(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	rows := make(map[string][]string)
	t.Run("journeys", func(t *testing.T) {
		for _, j := range theJourneys {
			t.Run(j.name, func(t *testing.T) {
				t.Parallel()
				row := j.travel(t)
				mu.Lock()
				defer mu.Unlock()
				rows[j.name] = row
			})
		}
	})
	compareMatrix(t, rows)
}

// travel returns the client's row, without its name and date.
func (j *journey) travel(t *testing.T) []string {
	version := j.version(t)
	w := serve(t, "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh", "GRAPHITI_PROXY_IDENTITY_GROUP_IDS=raw")
	w.model.SetAnswer(journeyModel())
	tap := newTap(t, w.url)
	dir := t.TempDir()
	repo, other := clone(t, filepath.Join(dir, "repo")), clone(t, filepath.Join(dir, "other"))
	for _, in := range []string{repo, other} {
		write(t, secret+"\n", in, notes)
	}
	if out, err := git(other, "remote", "set-url", "origin", "https://github.com/acme/gadgets.git"); err != nil {
		t.Fatalf("git remote set-url: %v %s", err, out)
	}
	home := filepath.Join(dir, "home")
	must(t, os.Mkdir(home, 0o700))
	t.Cleanup(func() { endAll(t, home) })
	kept := func(what string, in string, fits func(episode) bool) {
		t.Helper()
		w.until(t, what, func(q queue) bool { return q.Pending == 0 && slices.ContainsFunc(w.episodes(t, in), fits) })
	}
	said := func(text string) func(episode) bool {
		return func(e episode) bool { return e.Role == "user" && strings.Contains(e.Text, text) }
	}
	first := "This is " + j.name + ". The staging database is called Miso. Remember it."
	j.run(t, tap.url, home, repo, first, how{})
	kept("the first turn", widgets, said(first))
	file := ""
	if j.attaches {
		file = notes
	}
	if !j.once {
		j.run(t, tap.url, home, repo, portAsked, how{goOn: true, file: file})
		kept("the turn that goes on", widgets, said(portAsked))
	}
	if j.compact != nil {
		j.compact(t, tap.url, home, repo)
		kept("the summary", widgets, func(e episode) bool { return e.Role == "system" })
		j.run(t, tap.url, home, repo, host, how{goOn: true})
		kept("the turn behind the summary", widgets, said(host))
	}
	w.model.Forget()
	out := j.run(t, tap.url, home, repo, asking+" Count first. [[tool "+j.tool+"]]", how{})
	kept("the second conversation", widgets, said(asking))
	if !strings.Contains(out, "It is called Miso.") {
		t.Errorf("in a second conversation it printed %q", out)
	}
	once := j.insertedOnce(t, w)
	j.run(t, tap.url, home, other, asking, how{file: file}) // the client may phrase the first message differently
	kept("the other project's turn", gadgets, said(asking))
	return append([]string{version}, j.judge(t, w, tap, once, first)...)
}

// insertedOnce reports whether the second conversation has a block in at least two
// requests, once in each, and always the same.
func (j *journey) insertedOnce(t *testing.T, w *world) bool {
	blocks, rounds := make(map[string]bool), 0
	for _, r := range w.model.Requests() {
		all := blockQuoted.FindAllString(string(r.Body), -1)
		if len(all) == 0 {
			continue
		}
		rounds++
		blocks[all[0]] = true
		if len(all) != 1 {
			t.Errorf("%d blocks stand in a request", len(all))
			return false
		}
	}
	if len(blocks) != 1 || rounds < 2 {
		t.Errorf("%d blocks in %d rounds", len(blocks), rounds)
	}
	return len(blocks) == 1 && rounds >= 2
}

// judge returns the cells of the row: a dash for a step that the client does not support.
func (j *journey) judge(t *testing.T, w *world, tap *tap, once bool, first string) []string {
	cell := func(can bool, wrong ...string) string {
		for _, why := range wrong {
			t.Error(why)
		}
		switch {
		case !can:
			return "–"
		case len(wrong) > 0:
			return "**no**"
		}
		return columnOK
	}
	inWidgets, inGadgets := w.episodes(t, widgets), w.episodes(t, gadgets)
	var words, attached, session, place, compaction []string
	mine := []string{first, portAsked, host, goOn, asking, "/compress"}
	conversation := ""
	for _, e := range inWidgets {
		if strings.Trim(e.Text, `"`) == first {
			conversation = e.session()
		}
	}
	for _, e := range slices.Concat(inWidgets, inGadgets) {
		switch text := strings.Trim(strings.TrimSuffix(e.Text, " @"+notes), `"`); {
		case strings.Contains(e.Text, "quokka"):
			attached = append(attached, "the file was kept: "+e.Text)
		case e.Role == "system":
			if !strings.Contains(e.Text, summed) {
				compaction = append(compaction, "the summary is "+e.Text)
			}
			if e.session() != conversation {
				compaction = append(compaction, "the summary is of another session")
			}
		case e.Role == "user" && !slices.ContainsFunc(mine, func(s string) bool { return text == s || s == asking && strings.HasPrefix(text, s) }):
			words = append(words, "kept as a person's words: "+e.Text)
		case e.Role == "user" && (text == portAsked || text == host) && e.session() != conversation:
			session = append(session, "another session: "+text)
		case e.Role == "user" && strings.HasPrefix(text, asking) && e.session() == conversation:
			session = append(session, "the second conversation is in the session of the first")
		}
	}
	if len(inGadgets) != 2 || strings.Contains(inGadgets[1].Text, "Miso") {
		place = append(place, fmt.Sprintf("the other project holds %+v", inGadgets))
	}
	if others := w.episodes(t, "user_josh"); len(others) > 0 {
		place = append(place, fmt.Sprintf("the person's memory holds %+v", others))
	}
	result := []string{cell(true, tap.differs(w.model)...), columnOK, cell(true, words...), cell(!j.once, session...), cell(true, place...), cell(j.compact != nil, compaction...), cell(j.attaches, attached...)}
	if !once {
		result[1] = "**no**"
	}
	return result
}

// version returns the version of the installed package.
func (j *journey) version(t *testing.T) string {
	b, err := os.ReadFile(filepath.Join(".cache", j.needs, "package.json"))
	if err != nil {
		t.Skipf("SKIPPED LOUDLY: %s is not installed; run internal/e2e/install.sh where npm's registry is reached", j.needs)
	}
	var p struct{ Version string }
	must(t, json.Unmarshal(b, &p))
	version, _, _ := strings.Cut(p.Version, "-")
	return version
}

const matrixFile = "../../docs/clients.md"

// compareMatrix checks that the table of docs/clients.md matches the rows, except for the
// dates. UPDATE=1 writes the rows into the table.
func compareMatrix(t *testing.T, rows map[string][]string) {
	b, err := os.ReadFile(matrixFile)
	must(t, err)
	lines := strings.Split(string(b), "\n")
	for name, row := range rows {
		if row == nil {
			continue // the client did not run
		}
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "| "+name+" |") })
		if at < 0 {
			t.Errorf("docs/clients.md has no row of %s", name)
			continue
		}
		want := "| " + name + " | " + strings.Join(row, " | ") + " |"
		if strings.HasPrefix(lines[at], want) {
			continue
		}
		if os.Getenv("UPDATE") == "" {
			t.Errorf("docs/clients.md says\n%s\nand it is\n%s (UPDATE=1 writes it)", lines[at], want)
			continue
		}
		lines[at] = want + time.Now().UTC().Format(" 2006-01-02 |")
	}
	if os.Getenv("UPDATE") != "" {
		must(t, os.WriteFile(matrixFile, []byte(strings.Join(lines, "\n")), 0o644))
	}
}
