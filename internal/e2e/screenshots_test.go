//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// shot is a picture of a page.
type shot struct {
	Name   string   `json:"name"`
	Path   string   `json:"path"`
	Follow []string `json:"follow,omitempty"` // links, by the beginnings of their names
	Query  string   `json:"query,omitempty"`
	Place  string   `json:"place,omitempty"`  // place of the query
	Open   string   `json:"open,omitempty"`   // element to click at the end
	Scroll string   `json:"scroll,omitempty"` // element at the top of the picture
	Phone  bool     `json:"phone,omitempty"`
}

const pictures = "../../docs/images/inspector"

// TestScreenshots makes the pictures in docs/images/inspector from testdata/invented.yaml
// if SCREENSHOTS is set.
func TestScreenshots(t *testing.T) {
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS=1 makes them")
	}
	program, dir := buildForOtherTimes(t), t.TempDir()
	t.Run("one person", func(t *testing.T) { picturesOfOne(t, program, dir) })
	t.Run("a team", func(t *testing.T) { picturesOfTeam(t, program, dir) })
	files, err := filepath.Glob(filepath.Join(dir, "*.png"))
	if err != nil || t.Failed() {
		t.Fatal("some pictures are missing; none is replaced", err)
	}
	must(t, os.MkdirAll(pictures, 0o755))
	all := 0
	for _, f := range files {
		all += shrink(t, f, filepath.Join(pictures, filepath.Base(f)))
	}
	t.Logf("%d pictures, %d bytes", len(files), all)
	if all > 1_500_000 {
		t.Error("the pictures are too large for a repository")
	}
}

// picturesOfOne takes the pictures of the invented person's memory, on the last of the
// invented days.
func picturesOfOne(t *testing.T, program, dir string) {
	all := readInvented(t)
	w := serveWith(t, program, at(all.when(t, &all.Conversations[0])))
	w.model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		r, before := proxytest.Recollect(c), 0
		for _, m := range c.Messages[:len(c.Messages)-1] { // an earlier request had them
			before += len(m.Text) / 4
		}
		r.Cached = before
		return r
	})
	last := all.Conversations[len(all.Conversations)-1].Day
	for i := range all.Conversations {
		c := &all.Conversations[i]
		if i == 0 || c.Day < last || all.Conversations[i-1].Day < last { // one process serves the last day, for Live
			w.stop(t)
			w.start(t, at(all.when(t, c)))
		}
		w.hold(t, c)
	}
	inBrowser(t, "shots.mjs", map[string]any{"base": w.admin, "dir": dir, "shots": []shot{
		{Name: "today", Path: "/", Phone: true},
		{Name: "live", Path: "/live", Open: "#rows summary"},
		{Name: "conversations", Path: "/conversations"},
		{Name: "conversation", Path: "/conversations", Follow: []string{"When is the reminder"}, Scroll: ".turn:nth-of-type(2)", Phone: true},
		{Name: "silence", Path: "/conversations", Follow: []string{"What is the bucket"}, Scroll: ".turn:nth-of-type(2)"},
		{Name: "message", Path: "/conversations", Follow: []string{"When is the reminder", "Correct"}},
		{Name: "memory", Path: "/memory"},
		{Name: "timeline", Path: "/memory", Follow: []string{"seed-library"}},
		{Name: "facts", Path: "/memory", Follow: []string{"your own memory", "Valid now"}},
		{Name: "search", Path: "/search", Query: "tide tables", Place: "tide-clock"},
		{Name: "import", Path: "/memory/import"},
		{Name: "forget", Path: "/memory", Follow: []string{"Forget… tide-clock"}},
	}})
}

// picturesOfTeam takes the pictures of a proxy with several people and a Graphiti that
// refuses some messages.
func picturesOfTeam(t *testing.T, program, dir string) {
	g, err := graphititest.Start(graphititest.Options{})
	must(t, err)
	defer g.Close()
	w := serveTeam(t, program, map[string]string{"ann": "Ann (greenhouse)", "josh": "Josh (workshop)"}, at(time.Date(2026, time.May, 21, 10, 20, 0, 0, time.UTC)), "GRAPHITI_PROXY_MEMORY_BACKEND=graphiti", "GRAPHITI_PROXY_MEMORY_ENDPOINT="+g.URL(), "GRAPHITI_PROXY_MEMORY_CONSENT=true")
	w.confide(t)
	g.Always(graphititest.Messages, graphititest.Refuse())
	for _, text := range []string{"The kiln is fired on Saturdays.", "Glazes are mixed in the blue bucket.", "The greenhouse has a new lock."} {
		w.attack(t, "/v1/chat/completions", asked("m", text), map[string]string{"Authorization": "Bearer sk-ann"})
	}
	w.eventually(t, "turns that wait", func() bool {
		_, got := w.get(t, adminToken, "queue")
		var q queue
		return json.Unmarshal([]byte(got), &q) == nil && q.Pending >= 3
	})
	inBrowser(t, "shots.mjs", map[string]any{"base": w.admin, "token": adminToken, "dir": dir, "shots": []shot{
		{Name: "login", Path: "/login"},
		{Name: "people", Path: "/people"},
		{Name: "delivery", Path: "/delivery"},
	}})
}

// shrink writes a picture with at most 256 colors and returns the length of its file. Pages
// have few colors: the rarest become the nearest of the others.
func shrink(t *testing.T, from, to string) int {
	t.Helper()
	f, err := os.Open(from)
	must(t, err)
	defer f.Close()
	whole, err := png.Decode(f)
	must(t, err)
	counts, area := map[color.RGBA]int{}, whole.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var few color.Palette
	for _, c := range often[:min(len(often), 256)] {
		few = append(few, c)
	}
	small, index := image.NewPaletted(area, few), map[color.RGBA]uint8{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := color.RGBAModel.Convert(whole.At(x, y)).(color.RGBA)
			i, known := index[c]
			if !known {
				i = uint8(few.Index(c))
				index[c] = i
			}
			small.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small))
	must(t, os.WriteFile(to, b.Bytes(), 0o644))
	return b.Len()
}

// buildForOtherTimes builds the binary with a clock that is ahead by TIME_SHIFT seconds, so
// that weeks pass in seconds and pictures always have the same dates.
func buildForOtherTimes(t *testing.T) string {
	t.Helper()
	const is, to = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {", "	sec, nsec, mono := runtimeNow()\n	sec += shift\n	if mono == 0 {"
	folder := filepath.Join(runtime.GOROOT(), "src", "time")
	dir, err := filepath.Abs(".cache/clock") // fixed, so that the build is cached
	must(t, err)
	clock := read(t, filepath.Join(folder, "time.go"))
	if strings.Count(clock, is) != 1 {
		t.Fatalf("Go %s has another clock than this test knows", runtime.Version())
	}
	write(t, strings.Replace(clock, is, to, 1), dir, "time.go")
	write(t, `package time

import "syscall"

// shift is an int64, written without a sign.
var shift = func() (sec int64) {
	s, _ := syscall.Getenv("TIME_SHIFT")
	for _, digit := range []byte(s) {
		sec = 10*sec + int64(digit-'0')
	}
	return sec
}()
`, dir, "shift.go")
	replace := map[string]string{}
	for _, name := range []string{"time.go", "shift.go"} {
		replace[filepath.Join(folder, name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	write(t, string(overlay), dir, "overlay.json")
	out := filepath.Join(t.TempDir(), "graphiti-proxy")
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace", "-overlay", filepath.Join(dir, "overlay.json"), "-o", out, "../../cmd/graphiti-proxy")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// at returns the variable that sets that binary's clock to a time.
func at(when time.Time) string {
	return "TIME_SHIFT=" + strconv.FormatUint(uint64(time.Until(when)/time.Second), 10)
}
