package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// made returns the files of a release that need no tool, with short texts as binaries.
func made(t *testing.T) map[string][]byte {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test has no build information")
	}
	r := &release{
		version: version{semver: "1.2.3", python: "1.2.3", linux: "1.2.3"}, at: time.Unix(1700000000, 0), out: t.TempDir(),
		papers: []file{{name: "README.md", mode: 0o644}, {name: "LICENSE", mode: 0o644, body: []byte("licensed")}, {name: licenses, mode: 0o644, body: []byte("of others")}},
		man:    []file{{name: "graphiti-proxy.1", mode: 0o644, body: []byte(".TH")}},
		shell:  []file{{name: "_graphiti-proxy", mode: 0o644}, {name: "graphiti-proxy.bash", mode: 0o644}, {name: "graphiti-proxy.fish", mode: 0o644}},
	}
	for platform := range wheelTags {
		goos, goarch, _ := strings.Cut(platform, "/")
		b := &build{OS: goos, Arch: goarch, path: name, body: []byte("the binary for " + platform), info: info}
		if goos == "windows" {
			b.path += ".exe"
		}
		r.builds = append(r.builds, b)
	}
	slices.SortFunc(r.builds, func(a, b *build) int { return strings.Compare(a.OS+a.Arch, b.OS+b.Arch) })
	must(t, errors.Join(r.write(), r.seal()))
	files := make(map[string][]byte)
	there, err := os.ReadDir(r.out)
	must(t, err)
	for _, f := range there {
		if files[f.Name()], err = os.ReadFile(filepath.Join(r.out, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// entries returns the files in an archive by their names, with their modes.
func entries(t *testing.T, name string, body []byte) map[string]file {
	t.Helper()
	in := make(map[string]file)
	add := func(f file, r io.Reader, err error) {
		if err == nil {
			f.body, err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		in[f.name] = f
	}
	if strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".whl") {
		z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
		must(t, err)
		for _, f := range z.File {
			r, err := f.Open()
			add(file{name: f.Name, mode: int64(f.Mode().Perm())}, r, err)
		}
		return in
	}
	var r io.Reader = bytes.NewReader(body)
	if !strings.HasSuffix(name, ".tar") {
		z, err := gzip.NewReader(r)
		must(t, err)
		r = z
	}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return in
		}
		must(t, err)
		add(file{name: h.Name, mode: h.Mode}, archive, nil)
	}
}

func TestBinaryPerPlatform(t *testing.T) {
	t.Parallel()
	files := made(t)
	for _, tc := range []struct{ archive, entry, platform string }{
		{"graphiti-proxy_1.2.3_linux_arm64.tar.gz", "graphiti-proxy_1.2.3_linux_arm64/graphiti-proxy", "linux/arm64"},
		{"graphiti-proxy_1.2.3_darwin_amd64.tar.gz", "graphiti-proxy_1.2.3_darwin_amd64/graphiti-proxy", "darwin/amd64"},
		{"graphiti-proxy_1.2.3_windows_amd64.zip", "graphiti-proxy_1.2.3_windows_amd64/graphiti-proxy.exe", "windows/amd64"},
		{"graphiti-proxy-darwin-arm64-1.2.3.tgz", "package/bin/graphiti-proxy", "darwin/arm64"},
		{"graphiti-proxy-win32-x64-1.2.3.tgz", "package/bin/graphiti-proxy.exe", "windows/amd64"},
		{"graphiti_proxy-1.2.3-py3-none-macosx_12_0_arm64.whl", "graphiti_proxy-1.2.3.data/scripts/graphiti-proxy", "darwin/arm64"},
		{"graphiti_proxy-1.2.3-py3-none-win_amd64.whl", "graphiti_proxy-1.2.3.data/scripts/graphiti-proxy.exe", "windows/amd64"},
	} {
		if files[tc.archive] == nil {
			t.Errorf("got %q, want %s", slices.Sorted(maps.Keys(files)), tc.archive)
			continue
		}
		f := entries(t, tc.archive, files[tc.archive])[tc.entry]
		if want := "the binary for " + tc.platform; string(f.body) != want || f.mode != 0o755 {
			t.Errorf("%s in %s: got %q, mode %o, want %q, mode 755", tc.entry, tc.archive, f.body, f.mode, want)
		}
	}
}

// TestManPagesAndCompletions checks that each package has man pages and completions, except
// images and the npm packages that another package installs.
func TestManPagesAndCompletions(t *testing.T) {
	t.Parallel()
	for name, body := range made(t) {
		if !regexp.MustCompile(`_(darwin|linux|windows)_[a-z0-9]+\.(tar\.gz|zip)$|\.whl$|proxy-1\.2\.3\.tgz$`).MatchString(name) {
			continue
		}
		in := strings.Join(slices.Sorted(maps.Keys(entries(t, name, body))), "\n")
		for _, want := range []string{"/graphiti-proxy.1", "/_graphiti-proxy", "/graphiti-proxy.fish"} {
			if !strings.Contains(in, want) {
				t.Errorf("%s: got %q, want %s in it", name, in, want)
			}
		}
	}
}

func TestImageIsConsistent(t *testing.T) {
	t.Parallel()
	const archive = "graphiti-proxy_1.2.3_linux_arm64_image.tar"
	in := entries(t, archive, made(t)[archive])
	var images []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(in["manifest.json"].body, &images); err != nil || len(images) != 1 || len(images[0].Layers) != 1 {
		t.Fatalf("got %+v, %v, want one image with one layer", images, err)
	}
	root := entries(t, "layer.tar.gz", in[images[0].Layers[0]].body)
	if got := string(root["graphiti-proxy"].body); got != "the binary for linux/arm64" {
		t.Errorf("got %q, want the binary for linux/arm64", got)
	}
	if n := bytes.Count(root["etc/ssl/certs/ca-certificates.crt"].body, []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("got %d certificates, want at least 100", n)
	}
	var config struct {
		Config struct{ User string }
		RootFS struct {
			IDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(in[images[0].Config].body, &config); err != nil || config.Config.User != "65532:65532" {
		t.Errorf("got %+v, %v, want user 65532:65532", config, err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(in[images[0].Layers[0]].body))
	must(t, err)
	layer, err := io.ReadAll(unpacked)
	if want := "sha256:" + sum(layer); err != nil || !slices.Equal(config.RootFS.IDs, []string{want}) {
		t.Errorf("got layers %q, %v, want %s", config.RootFS.IDs, err, want)
	}
}

// TestManifestArchives checks that each manifest has the URL and the checksum of
// each archive that it downloads.
func TestManifestArchives(t *testing.T) {
	t.Parallel()
	files := made(t)
	for manifest, system := range map[string]string{"graphiti-proxy.rb": "_(darwin|linux)_", "graphiti-proxy.json": "_windows_", "GraphitiProxy.GraphitiProxy.installer.yaml": "_windows_"} {
		named := 0
		for name, body := range files {
			if !regexp.MustCompile(system + `[a-z0-9]+\.(tar\.gz|zip)$`).MatchString(name) {
				continue
			}
			named++
			if text := string(files[manifest]); !strings.Contains(text, "/v1.2.3/"+name) || !strings.Contains(text, sum(body)) {
				t.Errorf("%s: got\n%s\nwant %s and %s in it", manifest, text, name, sum(body))
			}
		}
		if named < 2 {
			t.Errorf("%s: got %d archives, want at least 2", manifest, named)
		}
	}
	for name, body := range files {
		if strings.HasSuffix(name, ".json") && !json.Valid(body) {
			t.Errorf("%s: got invalid JSON\n%s", name, body)
		}
	}
}

// TestChecksumsCoverAllFiles checks that each file has a checksum.
func TestChecksumsCoverAllFiles(t *testing.T) {
	t.Parallel()
	files := made(t)
	for name, body := range files {
		switch line := sum(body) + "  " + name + "\n"; {
		case name == "checksums.txt":
		case !strings.Contains(string(files["checksums.txt"]), line):
			t.Errorf("got\n%s\nwant %q in it", files["checksums.txt"], line)
		}
	}
}

func TestReproducibleFiles(t *testing.T) {
	t.Parallel()
	first, second := made(t), made(t)
	for name, body := range first {
		if !bytes.Equal(body, second[name]) {
			t.Errorf("%s: got different bytes, want the same twice", name)
		}
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]version{
		"v1.2.3":                             {"1.2.3", "1.2.3", "1.2.3"},
		"v1.2.3-rc.4":                        {"1.2.3-rc.4", "1.2.3rc4", "1.2.3-rc4"},
		"v0.0.0-20261126113818-3907745abcde": {"0.0.0-20261126113818-3907745abcde", "0.0.0.dev20261126113818", "0.0.0-pre20261126113818"},
		"v1.2.4-0.20261126113818-3907745abcde+dirty":      {"1.2.4-0.20261126113818-3907745abcde", "1.2.4.dev20261126113818", "1.2.4-pre20261126113818"},
		"v1.2.3-rc.4.0.20261126113818-3907745abcde+dirty": {"1.2.3-rc.4.0.20261126113818-3907745abcde", "1.2.3rc4.dev20261126113818", "1.2.3-pre20261126113818"},
		"(devel)": {}, "v1.2": {}, "v1.2.3-beta": {}, "1.2.3": {},
	} {
		got, err := parseVersion(text)
		if got != want || (err == nil) != (want != version{}) {
			t.Errorf("parseVersion(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}
