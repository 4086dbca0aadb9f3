// Command release makes all files of a release in one directory, from a clone: archives,
// packages of systems, of npm and of PyPI, images, manifests, SBOMs and
// checksums. It owns the forms of these files. The same commit and Go version give the
// same bytes.
//
// It publishes nothing.
//
//	go run ./deploy/release -out dist
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	name     = "graphiti-proxy"
	summary  = "A transparent proxy that gives any LLM client a long-term memory"
	homepage = "https://github.com/graphiti-proxy/graphiti-proxy"
)

// build is the binary for one platform.
type build struct {
	OS, Arch     string
	Archive, Sum string // name and SHA-256 of its archive
	path         string
	body         []byte
	info         *debug.BuildInfo
}

// binary returns the binary as a file of an archive.
func (b *build) binary(dir string) file {
	return file{name: dir + filepath.Base(b.path), mode: 0o755, body: b.body}
}

// setting returns a build setting of the binary, such as vcs.revision.
func (b *build) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// release holds the common input of all files of a release.
type release struct {
	version    version
	at         time.Time // of the commit
	out, stage string    // directories of the release, and of temporary files
	papers     []file    // license, documents, configurations
	man, shell []file    // man pages and completions
	builds     []*build  // at least one
}

func main() {
	out := flag.String("out", "dist", "`directory` for the files; it must be empty or missing")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "`list` of GOOS/GOARCH")
	flag.Parse()
	if err := run(*out, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out string, platforms []string) error {
	if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is not empty; delete it or choose another directory with -out", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	host, err := compile(stage, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil {
		return err
	}
	r := &release{out: out, stage: stage}
	for _, p := range platforms {
		b := host
		if p != host.OS+"/"+host.Arch {
			if b, err = compile(stage, p); err != nil {
				return err
			}
		}
		r.builds = append(r.builds, b)
	}
	if err := r.describe(host); err != nil {
		return err
	}
	if err := r.complete(host.path); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	if err := r.systemPackages(); err != nil {
		return err
	}
	return r.seal()
}

// compile builds the binary for a platform in the form GOOS/GOARCH.
func compile(stage, platform string) (*build, error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	b := &build{OS: goos, Arch: goarch, path: filepath.Join(stage, goos+"_"+goarch, name)}
	if goos == "windows" {
		b.path += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", b.path, "./cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build for %s: %w\n%s", platform, err, out)
	}
	var err error
	if b.body, err = os.ReadFile(b.path); err != nil {
		return nil, err
	}
	b.info, err = buildinfo.Read(bytes.NewReader(b.body))
	return b, err
}

// describe takes version and time from a binary, and reads the files of the clone
// that packages contain.
func (r *release) describe(b *build) (err error) {
	if r.at, err = time.Parse(time.RFC3339, b.setting("vcs.time")); err != nil {
		return errors.New("no commit in the build information of the binary; run the command in a clone, not in a source archive or a linked work tree")
	}
	if r.version, err = parseVersion(b.info.Main.Version); err != nil {
		return err
	}
	if r.papers, err = readAll("LICENSE", "README.md", "CHANGELOG.md", "docs/*.md", "deploy/systemd/*", "deploy/prometheus/*"); err != nil {
		return err
	}
	r.man, err = readAll("deploy/man/*")
	for i := range r.man {
		r.man[i].name = filepath.Base(r.man[i].name)
	}
	return err
}

func readAll(patterns ...string) (files []file, err error) {
	for _, p := range patterns {
		names, err := filepath.Glob(p)
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("%s is not in this directory; run the command in a clone's root", p)
		}
		for _, n := range names {
			body, err := os.ReadFile(n)
			if err != nil {
				return nil, err
			}
			files = append(files, file{name: filepath.ToSlash(n), mode: 0o644, body: body})
		}
	}
	return files, nil
}

// complete lets the binary for this machine print its completions and licenses.
func (r *release) complete(binary string) error {
	dir := filepath.Join(r.stage, "completions")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for shell, as := range map[string]string{"bash": name + ".bash", "zsh": "_" + name, "fish": name + ".fish", "powershell": name + ".ps1"} {
		text, err := exec.Command(binary, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("print the completions for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(dir, as), text, 0o644); err != nil {
			return err
		}
		r.shell = append(r.shell, file{name: as, mode: 0o644, body: text})
	}
	text, err := exec.Command(binary, "licenses").Output()
	if err != nil {
		return fmt.Errorf("print the licenses: %w", err)
	}
	r.papers = append(r.papers, file{name: licenses, mode: 0o644, body: text})
	return os.WriteFile(filepath.Join(dir, licenses), text, 0o644)
}

// licenses is the file with the licenses of others' work in the program.
const licenses = "LICENSES.txt"

// write writes all files that need no tool.
func (r *release) write() error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, b := range r.builds {
		of := []func(*build) error{r.archive, r.bom, r.npmBinary, r.wheel}
		if b.OS == "linux" {
			of = append(of, r.image)
		}
		for _, f := range of {
			group.Go(func() error { return f(b) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.npmLauncher(); err != nil {
		return err
	}
	return r.manifests()
}

// archive writes the archive for a platform and notes its name and sum.
func (r *release) archive(b *build) (err error) {
	base := fmt.Sprintf("%s_%s_%s_%s", name, r.version.semver, b.OS, b.Arch)
	files := slices.Concat([]file{b.binary("")}, r.papers, under("man/", r.man), under("completions/", r.shell))
	form, packed := ".tar.gz", tarGz
	if b.OS == "windows" {
		form, packed = ".zip", zipped
	}
	body, err := packed(r.at, under(base+"/", files))
	if err != nil {
		return err
	}
	b.Archive, b.Sum = base+form, sum(body)
	return r.save(b.Archive, body)
}

func (r *release) save(name string, body []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), body, 0o644)
}

func sum(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}
