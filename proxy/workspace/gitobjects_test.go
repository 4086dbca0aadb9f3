package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FuzzDelta: what a pack holds makes no more than it says.
func FuzzDelta(f *testing.F) {
	f.Add([]byte("base"), []byte("\x04\x05\x90\x04\x01x"))
	f.Add([]byte("base"), []byte("\x04\x80\x80\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte{}, []byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if out, err := applyDelta(base, delta); err == nil && len(out) > maxObject {
			t.Errorf("%d bytes", len(out))
		}
	})
}

// FuzzPack: any index and pack is read to an object that is what it is called,
// or to none.
func FuzzPack(f *testing.F) {
	id := bytes.Repeat([]byte{0xab}, 20)
	index := append([]byte("\xfftOc\x00\x00\x00\x02"), bytes.Repeat([]byte{0, 0, 0, 1}, 256)...)
	index = append(append(append(index, id...), 0, 0, 0, 0), 0, 0, 0, 12)
	f.Add(index, []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x95\x01x\x9c"))
	f.Add(index, []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xe5\x01\x00"))
	f.Add(index, append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xf5\x01"), id...)) // a delta to itself
	f.Fuzz(func(t *testing.T, index, pack []byte) {
		git := t.TempDir()
		if err := os.MkdirAll(filepath.Join(git, "objects", "pack"), 0o700); err != nil {
			t.Fatal(err)
		}
		for ext, b := range map[string][]byte{"idx": index, "pack": pack} {
			if err := os.WriteFile(filepath.Join(git, "objects", "pack", "x."+ext), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o, err := openObjects(git)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if o.holds(fmt.Sprintf("%x", id)) {
			t.Error("an object that nobody made")
		}
	})
}

// FuzzCommit is read to its end.
func FuzzCommit(f *testing.F) {
	f.Add([]byte("tree x\nparent y\ncommitter a <b> 12 +0000\n\nparent z\n"))
	f.Add([]byte("committer \nparent\n"))
	f.Fuzz(func(t *testing.T, body []byte) { parseCommit(body) })
}

// benchProject is a repository with a longer history, in a pack.
func benchProject(b *testing.B) string {
	app := filepath.Join(gitHome(b), "app")
	newProject(b, app, privateRemote)
	var stream strings.Builder
	for i := range 3000 {
		when := time.Now().Add(time.Duration(i-3000) * time.Minute).Unix()
		message := fmt.Sprint("commit ", i, strings.Repeat(" of some length", 10))
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter x <x@example.com> %d +0000\ndata %d\n%s\n", when, len(message), message)
	}
	importing := filepath.Join(b.TempDir(), "stream")
	if err := os.WriteFile(importing, []byte(stream.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	gitAt(b, app, time.Time{}, "-c", "alias.load=!git fast-import --quiet < "+importing, "load")
	publish(b, app)
	gitAt(b, app, time.Time{}, "repack", "-qad")
	return app
}

// BenchmarkFirstLook binds a project: maxHistory commits are read.
func BenchmarkFirstLook(b *testing.B) {
	app := benchProject(b)
	for b.Loop() {
		p, _ := openProjects(b, "")
		if look(b, p, app).Remote == "" {
			b.Fatal("not bound")
		}
	}
}

// BenchmarkLookAgain at a directory of a project that is bound, every
// placeFresh.
func BenchmarkLookAgain(b *testing.B) {
	app := benchProject(b)
	p, _ := openProjects(b, "")
	look(b, p, app)
	for b.Loop() {
		if look(b, p, app).Remote == "" {
			b.Fatal("not bound")
		}
	}
}

// BenchmarkFind of a directory that was looked at.
func BenchmarkFind(b *testing.B) {
	p, dir := NewPlaces(), b.TempDir()
	p.Find(dir)
	for b.Loop() {
		p.Find(dir)
	}
}
