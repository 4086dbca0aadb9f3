package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// rival is a memory that a client reaches by its base URL.
type rival struct {
	name, setup string
	facts       bool // a model tells it the facts
	install     func(dir string) error
	installed   func(dir string) string // its file or folder, for its size
	start       func(dir string, run *rivalRun) *exec.Cmd
	configure   func(run *rivalRun) error // after the start
	tenants     bool                      // a project is a part of its base URL
	model       string                    // its name of the model; empty: the client's
	chatOnly    bool                      // it knows Chat Completions only
	quiet       time.Duration             // until it asks the model for facts
	newestLast  bool                      // its newest line is the last
	ignore      *regexp.Regexp
}

// rivalRun is a memory while it plays a week.
type rivalRun struct {
	*rival
	week         int
	binary       string // of the product
	encoder      embedded.Encoder
	dir, address string
	admin        string // of the product
	model        *weekModel
	cmd          *exec.Cmd
	exited       chan struct{} // closed when cmd has ended
	log          *os.File
	cookies      http.CookieJar
	key          string // for the memory's own users; empty: the client's
}

// rivals plays weeks through the proxy and through other programs with a memory.
func rivals(args []string) error {
	f := flag.NewFlagSet("rivals", flag.ContinueOnError)
	weeks := f.String("weeks", "3,4", "weeks of testdata/weeks; the product's numbers are fitted without the week that is played")
	only := f.String("only", "", "play only these memories, separated by commas")
	keep := f.String("dir", "", "folder for the installed programs, which stays; empty: a temporary one")
	verbose := f.Bool("v", false, "show each question with the added lines")
	if err := f.Parse(args); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "graphiti-proxy-rivals-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	dir := *keep
	if dir == "" {
		dir = temporary
	}
	var numbers []int
	for s := range strings.SplitSeq(*weeks, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > weekCount {
			return fmt.Errorf("-weeks %s: no such week", *weeks)
		}
		numbers = append(numbers, n)
	}
	by, err := newCached(filepath.Join(dir, "vectors"))
	if err != nil {
		return err
	}
	binaries, err := productsWithout(dir, by, numbers)
	if err != nil {
		return err
	}
	var columns []*rivalColumn
	for i := range rivalList {
		r := &rivalList[i]
		if *only != "" && !slices.Contains(strings.Split(*only, ","), r.name) {
			continue
		}
		c := &rivalColumn{rival: r, missing: r.missing(dir)}
		columns = append(columns, c)
		for _, n := range numbers {
			if c.missing != "" {
				break
			}
			fmt.Fprintf(os.Stderr, "%s: week %d\n", r.name, n)
			run := &rivalRun{rival: r, week: n, binary: binaries[n], encoder: by, dir: filepath.Join(temporary, fmt.Sprint(len(columns), "-", n))}
			figures, err := run.play(dir, *verbose)
			if err != nil {
				c.missing = "week " + strconv.Itoa(n) + ": " + err.Error()
				break
			}
			c.weeks = append(c.weeks, figures)
		}
	}
	printRivals(os.Stdout, columns, numbers, dir, binaries)
	return nil
}

// missing installs a rival, and returns the reason of a failure.
func (r *rival) missing(dir string) string {
	if r.install == nil {
		return ""
	}
	fmt.Fprintf(os.Stderr, "%s: install\n", r.name)
	if err := r.install(dir); err != nil {
		return err.Error()
	}
	return ""
}

// productsWithout builds the program with numbers that were fitted to the other weeks.
func productsWithout(dir string, by *cached, weeks []int) (map[int]string, error) {
	binaries := make(map[int]string)
	var f *fitter
	for _, n := range weeks {
		binaries[n] = filepath.Join(dir, "without-week"+strconv.Itoa(n))
		var err error
		if f == nil {
			fmt.Fprintln(os.Stderr, "fit the numbers of the ranking")
			if f, err = newFitter(by, 0.03); err != nil {
				return nil, err
			}
		}
		folder := filepath.Join(dir, "numbers"+strconv.Itoa(n))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		if err := errors.Join(f.write(folder, by, n), by.save()); err != nil {
			return nil, err
		}
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		replace := make(map[string]string)
		for _, name := range []string{by.Name() + ".bin", by.Name() + ".json"} {
			replace[filepath.Join(here, shipped, name)] = filepath.Join(folder, name)
		}
		overlay := filepath.Join(folder, "overlay.json")
		if err := os.WriteFile(overlay, mustJSON(object{"Replace": replace}), 0o600); err != nil {
			return nil, err
		}
		if out, err := exec.Command("go", "build", "-overlay", overlay, "-tags", "grpcnotrace", "-o", binaries[n], "./cmd/graphiti-proxy").CombinedOutput(); err != nil { // #nosec G204 -- our own
			return nil, fmt.Errorf("build the proxy (run from the module's root): %w\n%s", err, out)
		}
	}
	return binaries, nil
}

// begin starts the memory and waits until it answers.
func (r *rivalRun) begin(dir string) (err error) {
	if err = os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if r.model, err = startWeekModel(r.encoder); err != nil {
		return err
	}
	r.address = freeAddress()
	r.cookies, _ = cookiejar.New(nil) // never fails
	if r.start == nil {
		return nil
	}
	if r.log, err = os.Create(filepath.Join(r.dir, "log")); err != nil {
		return err
	}
	r.cmd = r.start(dir, r)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.dir, r.log, r.log
	if err = r.cmd.Start(); err != nil {
		return err
	}
	r.exited = make(chan struct{})
	// Ends with the process.
	go func() { _ = r.cmd.Wait(); close(r.exited) }()
	for range 1200 {
		select {
		case <-r.exited:
			return fmt.Errorf("it ended; its last words: %s", r.lastWords())
		case <-time.After(100 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", r.address); err == nil {
			c.Close()
			if r.configure != nil {
				return r.configure(r)
			}
			return nil
		}
	}
	return fmt.Errorf("it does not listen; its last words: %s", r.lastWords())
}

func (r *rivalRun) lastWords() string {
	b, _ := os.ReadFile(filepath.Join(r.dir, "log")) // it may have said nothing
	return string(bytes.TrimSpace(b[max(0, len(b)-400):]))
}

func (r *rivalRun) end() {
	if pids := r.pids(); len(pids) > 0 {
		_ = r.cmd.Process.Kill()
		<-r.exited
		for _, pid := range pids[1:] {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
	if r.log != nil {
		_ = r.log.Close()
	}
	if r.model != nil {
		_ = r.model.server.Close()
	}
}

// pids returns the memory's processes.
func (r *rivalRun) pids() (all []int) {
	if r.cmd == nil || r.cmd.Process == nil {
		return nil
	}
	todo := []int{r.cmd.Process.Pid}
	for len(todo) > 0 {
		family := withChildren(todo[0])
		all, todo = append(all, family[0]), append(todo[1:], family[1:]...)
	}
	return all
}

func (r *rivalRun) resident() (sum int64) {
	for _, pid := range r.pids() {
		sum += resident(pid)
	}
	return sum
}

// settle waits until the memory has nothing to do.
func (r *rivalRun) settle() {
	if r.cmd == nil {
		return
	}
	time.Sleep(r.quiet)
	for calm, n := 0, 0; calm < 2 && n < 60; n++ {
		before := cpuOf(r.pids())
		time.Sleep(200 * time.Millisecond)
		if cpuOf(r.pids())-before < 20e6 {
			calm++
		} else {
			calm = 0
		}
	}
}

// send sends a request of a client through the memory, and returns the bodies before and after.
func (r *rivalRun) send(q weekRequest, project string) (client, upstream []byte, err error) {
	if r.chatOnly {
		q = q.asChat()
	}
	if r.rival.model != "" {
		q.body["model"] = r.rival.model
	}
	q.body["stream"] = false
	client = mustJSON(q.body)
	url := "http://" + r.address + "/v1"
	switch {
	case r.cmd == nil:
		url = r.model.url + "/v1"
	case r.tenants:
		url += "/" + project
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+strings.TrimPrefix(q.path, "/v1"), bytes.NewReader(client))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range q.header {
		req.Header.Set(k, v)
	}
	if r.key != "" {
		req.Header.Del("X-Api-Key")
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	resp, err := (&http.Client{Timeout: 2 * time.Minute}).Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, nil, errors.Join(err, fmt.Errorf("answered %s: %s", resp.Status, b[:min(300, len(b))]))
	}
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	return client, r.model.body, nil
}

// stamps are times to the microsecond before lines: their digits answer nothing.
var stamps = regexp.MustCompile(`\[\d{4}-\d\d-\d\dT[^]]*\] ?`)

// split returns the lines of a text that a memory added.
func (r *rivalRun) split(text string) (lines []string) {
	text = stamps.ReplaceAllString(text, "")
	text = strings.NewReplacer(`\n`, "\n", " · ", "\n").Replace(text)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && (r.ignore == nil || !r.ignore.MatchString(line)) {
			lines = append(lines, line)
		}
	}
	return lines
}

// rivalFigures are the figures of a memory in a week.
type rivalFigures struct {
	asks, answered, lines, right, plain, disturbed, old, won, person, known, foreign, turns, chars, useful float64
	cpu, first, last, told, taken                                                                          float64
	prompts                                                                                                promptCache
}

// promptCache adds up the bytes of prompts, and those from a provider's prompt cache.
type promptCache struct{ sent, reused int }

func (c *promptCache) add(before, now []byte) {
	same := 0
	for same < len(now) && same < len(before) && now[same] == before[same] {
		same++
	}
	if before != nil {
		c.sent, c.reused = c.sent+len(before), c.reused+same
	}
}

// promptOf returns the prompt of a request as a provider reads it.
func promptOf(body []byte) []byte {
	var b bytes.Buffer
	for _, s := range textsOf(body) {
		b.WriteString(s.role + "\x00" + s.text + "\x00")
	}
	return b.Bytes()
}

// play plays a week through a memory.
func (r *rivalRun) play(dir string, verbose bool) (*rivalFigures, error) {
	talks, err := readWeek(r.week)
	if err != nil {
		return nil, err
	}
	if err = r.begin(dir); err == nil {
		_, _, err = r.send(program([]spoken{{"user", "hello"}}, "", ""), "none")
	}
	defer r.end()
	if err != nil {
		return nil, err
	}
	w := newWhereSaid(talks)
	f := &rivalFigures{first: float64(r.resident())}
	began := cpuOf(r.pids())
	for i := range talks {
		if r.facts {
			r.model.learn(&talks[i])
		}
		if err := r.playTalk(&talks[i], i, f, w, verbose); err != nil {
			return nil, fmt.Errorf("%w; its last words: %s", err, r.lastWords())
		}
		r.settle()
	}
	f.cpu, f.last = float64(cpuOf(r.pids())-began)/1e6/f.turns, float64(r.resident())
	f.told = float64(len(r.model.told))
	f.taken = f.told
	if r.facts && r.admin != "" {
		f.taken, err = r.taken()
	}
	return f, err
}

// taken returns the number of facts that the product took.
func (r *rivalRun) taken() (float64, error) {
	resp, err := http.Get("http://" + r.admin + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if n, ok := strings.CutPrefix(line, "graphiti_proxy_facts_distilled_total "); ok {
			return strconv.ParseFloat(strings.TrimSpace(n), 64)
		}
	}
	return 0, errors.New("the program counts no facts")
}

func (r *rivalRun) playTalk(talk *weekTalk, number int, f *rivalFigures, w *whereSaid, verbose bool) error {
	client, project, folder := program, "none", ""
	if talk.Project != "" {
		client, project, folder = weekClients[number%len(weekClients)], talk.Project, filepath.Join(r.dir, talk.Project)
		if err := repository(folder); err != nil {
			return err
		}
	}
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", number, number)
	var said []spoken
	var before, prompt []byte
	var shown []string // lines of the previous request
	for i := range talk.Turns {
		turn := &talk.Turns[i]
		said = append(said, spoken{"user", turn.User})
		r.model.mu.Lock()
		r.model.turn = turn
		r.model.mu.Unlock()
		sent, upstream, err := r.send(client(said, folder, id), project)
		if err != nil {
			return err
		}
		all := added(sent, upstream, r.split)
		news := without(all, shown)
		told := told(said[:len(said)-1])
		f.count(r.rival, turn, all, news, told, w.foreign(talk.Project, news))
		prompt = promptOf(upstream)
		f.prompts.add(before, prompt)
		before, shown = prompt, all
		answer := r.model.answer(upstream)
		if verbose && (turn.Kind == "ask" || len(news) > 0) {
			fmt.Fprintf(os.Stderr, "%s %s %q %q\n\t%q\n", talk.Project, turn.Kind, turn.User, turn.Expect, news)
		}
		said = append(said, spoken{"assistant", answer})
	}
	return nil
}

func told(said []spoken) string {
	var b strings.Builder
	for _, s := range said {
		b.WriteString(s.text + "\n")
	}
	return b.String()
}

// without returns the lines of a list that another has not, or less often.
func without(list, other []string) (rest []string) {
	left := make(map[string]int)
	for _, s := range other {
		left[s]++
	}
	for _, s := range list {
		if left[s]--; left[s] < 0 {
			rest = append(rest, s)
		}
	}
	return rest
}

var frame = regexp.MustCompile(`^</?graphiti_memory>$|^Recalled quotations of|^Relevant memories:$`)

// count adds a turn.
func (f *rivalFigures) count(r *rival, turn *weekTurn, all, news []string, before string, foreign bool) {
	f.turns++
	f.foreign += float64(bitOf(foreign))
	for _, l := range news {
		f.chars += float64(len([]rune(l)))
	}
	switch {
	case turn.Kind == "plain":
		f.plain++
		f.disturbed += float64(bitOf(len(news) > 0))
	case turn.Kind != "ask" || holds(before, turn.Expect):
	case turn.Person:
		f.person++
		f.known += float64(bitOf(holds(strings.Join(all, "\n"), turn.Expect)))
	default:
		f.asks++
		f.answered += float64(bitOf(holds(strings.Join(all, "\n"), turn.Expect)))
		for _, l := range news {
			is := holds(l, turn.Expect)
			if is {
				f.right, f.useful = f.right+1, f.useful+float64(len([]rune(l)))
			}
			f.lines += float64(bitOf(is || !frame.MatchString(l)))
		}
		if len(turn.Old) > 0 {
			f.old++
			f.won += float64(bitOf(won(turn, all, news, r.newestLast)))
		}
	}
}

// won reports whether the newest line about a corrected fact has the new value.
func won(turn *weekTurn, all, news []string, newestLast bool) bool {
	either := slices.Concat(turn.Expect, turn.Old)
	lines := slices.Clone(news)
	if !holds(strings.Join(lines, "\n"), either) {
		lines = slices.Clone(all)
	}
	if newestLast {
		slices.Reverse(lines)
	}
	i := slices.IndexFunc(lines, func(l string) bool { return holds(l, either) })
	return i >= 0 && holds(lines[i], turn.Expect)
}

// whereSaid holds the projects of texts.
type whereSaid struct{ texts map[string]map[string]bool } // text → projects

func newWhereSaid(talks []weekTalk) *whereSaid {
	w := &whereSaid{make(map[string]map[string]bool)}
	add := func(project, text string) {
		text = strings.Trim(comparable(text), ".")
		if len([]rune(text)) < 20 {
			return
		}
		if w.texts[text] == nil {
			w.texts[text] = make(map[string]bool)
		}
		w.texts[text][project] = true
	}
	for _, talk := range talks {
		for _, t := range talk.Turns {
			if t.Kind == "say" || t.Kind == "fix" {
				add(talk.Project, t.User)
			}
		}
		for _, f := range talk.Facts {
			add(talk.Project, f.Text)
		}
	}
	return w
}

// foreign reports whether a line was only said in another project.
func (w *whereSaid) foreign(project string, lines []string) bool {
	if project == "" {
		return false
	}
	return slices.ContainsFunc(lines, func(line string) bool {
		elsewhere := false
		line = strings.Trim(beforeMemory.ReplaceAllString(comparable(line), ""), "“”… .")
		for text, in := range w.texts {
			if !strings.Contains(line, text) && (len([]rune(line)) < 12 || !strings.Contains(text, line)) {
				continue
			}
			if in[project] || in[""] {
				return false
			}
			elsewhere = true
		}
		return elsewhere
	})
}

// beforeMemory matches the label of a line.
var beforeMemory = regexp.MustCompile(`^(- )?[a-z][^:“]{0,60}: ?`)

// repository makes a folder a repository of its own.
func repository(folder string) error {
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	if out, err := exec.Command("git", "init", "-q", folder).CombinedOutput(); err != nil { // #nosec G204 -- our own
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	return exec.Command("git", "-C", folder, "remote", "add", "origin", "git@github.com:acme/"+filepath.Base(folder)+".git").Run() // #nosec G204 -- our own
}

// size returns the size of a file or folder, in MB.
func size(path string) float64 {
	sum := int64(0)
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // a file that went does not count
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return float64(sum) / 1e6
}

// rivalColumn is a column of the table.
type rivalColumn struct {
	*rival
	missing string
	weeks   []*rivalFigures
}

// rivalRows are the rows of the table for each week.
var rivalRows = []struct {
	name string
	of   func(f *rivalFigures) string
}{
	{"facts taken, of those told", func(f *rivalFigures) string {
		if f.told == 0 {
			return "–"
		}
		return fmt.Sprintf("%.0f of %.0f", f.taken, f.told)
	}},
	{"answered", share(func(f *rivalFigures) (float64, float64) { return f.answered, f.asks })},
	{"lines that answer", share(func(f *rivalFigures) (float64, float64) { return f.right, f.lines })},
	{"useful characters", share(func(f *rivalFigures) (float64, float64) { return f.useful, f.chars })},
	{"routine requests with new text", func(f *rivalFigures) string { return fmt.Sprintf("%.3f", f.disturbed/f.plain) }},
	{"corrections won", share(func(f *rivalFigures) (float64, float64) { return f.won, f.old })},
	{"of the person, in a new project", share(func(f *rivalFigures) (float64, float64) { return f.known, f.person })},
	{"turns with another project's fact", func(f *rivalFigures) string { return fmt.Sprintf("%.0f", f.foreign) }},
	{"new characters a turn", func(f *rivalFigures) string { return fmt.Sprintf("%.0f", f.chars/f.turns) }},
	{"prompt prefix reused", func(f *rivalFigures) string {
		return fmt.Sprintf("%.3f", float64(f.prompts.reused)/float64(f.prompts.sent))
	}},
	{"CPU a turn, ms", func(f *rivalFigures) string { return fmt.Sprintf("%.1f", f.cpu) }},
	{"RSS at start and end, MB", func(f *rivalFigures) string { return fmt.Sprintf("%.0f, %.0f", f.first/1e6, f.last/1e6) }},
}

func share(of func(*rivalFigures) (float64, float64)) func(*rivalFigures) string {
	return func(f *rivalFigures) string {
		a, b := of(f)
		if b == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", a/b)
	}
}

func printRivals(w io.Writer, columns []*rivalColumn, numbers []int, dir string, binaries map[int]string) {
	load, _ := os.ReadFile("/proc/loadavg") // not on every system
	fmt.Fprintf(w, "Weeks %v; %d processors; load %s\n\n|  |", numbers, runtime.NumCPU(), bytes.TrimSpace(load))
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, "\n| --- |%s\n", strings.Repeat(" --- |", len(columns)))
	for _, row := range rivalRows {
		fmt.Fprintf(w, "| %s |", row.name)
		for _, c := range columns {
			var cells []string
			for _, f := range c.weeks {
				cells = append(cells, row.of(f))
			}
			if c.missing != "" {
				cells = []string{"not run"}
			}
			fmt.Fprintf(w, " %s |", strings.Join(cells, " / "))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| installed, MB |")
	for _, c := range columns {
		if c.missing != "" || c.start == nil {
			fmt.Fprint(w, " – |")
			continue
		}
		path := binaries[numbers[0]]
		if c.installed != nil {
			path = c.installed(dir)
		}
		fmt.Fprintf(w, " %.0f |", size(path))
	}
	fmt.Fprint(w, "\n\n")
	for _, c := range columns {
		fmt.Fprintf(w, "- %s: %s\n", c.name, c.setup)
		if c.missing != "" {
			fmt.Fprintf(w, "  Not run: %s\n", c.missing)
		}
	}
}

// post sends JSON to a rival's own API.
func (r *rivalRun) post(method, path string, body any) (map[string]any, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+r.address+path, bytes.NewReader(mustJSON(body)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: time.Minute, Jar: r.cookies}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return nil, errors.Join(err, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, b[:min(300, len(b))]))
	}
	out := make(map[string]any)
	return out, json.Unmarshal(b, &out)
}
