package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// systemPackages writes the packages of Linux distributions for each processor, with nfpm.
// nfpm.mod pins it outside go.mod, because the binary does not use its modules.
func (r *release) systemPackages() error {
	build := exec.Command("go", "build", "-modfile=deploy/packages/nfpm.mod", "-buildvcs=false", "-o", filepath.Join(r.stage, "nfpm"), "github.com/goreleaser/nfpm/v2/cmd/nfpm")
	build.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build nfpm: %w\n%s", err, out)
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, b := range r.builds {
		for _, format := range []string{"deb", "rpm", "apk"} {
			if b.OS == "linux" {
				group.Go(func() error { return r.systemPackage(b, format) })
			}
		}
	}
	return group.Wait()
}

func (r *release) systemPackage(b *build, format string) error {
	// GitHub changes the ~ in the names that nfpm gives to release candidates.
	target := filepath.Join(r.out, fmt.Sprintf("%s_%s_linux_%s.%s", name, r.version.semver, b.Arch, format))
	cmd := exec.Command(filepath.Join(r.stage, "nfpm"), "package", "--config", "deploy/packages/nfpm.yaml", "--packager", format, "--target", target)
	cmd.Env = append(os.Environ(), "VERSION="+r.version.linux, "ARCH="+b.Arch, "BINARY="+b.path,
		"COMPLETIONS="+filepath.Join(r.stage, "completions"), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.at.Unix(), 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the %s package for %s: %w\n%s", format, b.Arch, err, out)
	}
	return nil
}

//go:embed templates/launcher.js
var launcher []byte

// npmNames maps Go's names of systems and processors to those of Node.js.
var npmNames = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32", "amd64": "x64", "arm64": "arm64"}

func npmPlatform(b *build) string { return npmNames[b.OS] + "-" + npmNames[b.Arch] }

// npmBinary writes the npm package that holds the binary for one platform.
func (r *release) npmBinary(b *build) error {
	return r.npm(name+"-"+npmPlatform(b), map[string]any{
		"name": "@" + name + "/" + npmPlatform(b), "description": name + " for " + npmPlatform(b),
		"os": []string{npmNames[b.OS]}, "cpu": []string{npmNames[b.Arch]}, "preferUnplugged": true,
	}, []file{b.binary("bin/"), r.paper("LICENSE"), r.paper(licenses)})
}

// npmLauncher writes the npm package that people install. npm installs the one of its
// optional dependencies that fits the machine.
func (r *release) npmLauncher() error {
	binaries, pages := make(map[string]string), []string(nil)
	for _, b := range r.builds {
		binaries["@"+name+"/"+npmPlatform(b)] = r.version.semver
	}
	for _, m := range r.man {
		pages = append(pages, "man/"+m.name)
	}
	files := slices.Concat([]file{{name: "launcher.js", mode: 0o755, body: launcher}, r.paper("LICENSE"), r.paper("README.md")},
		under("man/", r.man), under("completions/", r.shell))
	return r.npm(name, map[string]any{
		"name": name, "description": summary, "bin": map[string]string{name: "launcher.js"}, "man": pages,
		"engines": map[string]string{"node": ">=18"}, "optionalDependencies": binaries,
	}, files)
}

func (r *release) npm(base string, about map[string]any, files []file) error {
	about["version"], about["license"], about["homepage"] = r.version.semver, "Apache-2.0", homepage
	about["repository"] = map[string]string{"type": "git", "url": "git+" + homepage + ".git"}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	body, err := tarGz(r.at, under("package/", append(files, file{name: "package.json", mode: 0o644, body: text})))
	if err != nil {
		return err
	}
	return r.save(base+"-"+r.version.semver+".tgz", body)
}

func (r *release) paper(name string) file {
	return r.papers[slices.IndexFunc(r.papers, func(f file) bool { return f.name == name })]
}

// wheelTags maps a platform to its tags in wheels. The binary is static, so it runs with
// each C library. Go 1.26 needs macOS 12.
var wheelTags = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

// wheel writes the Python package for one platform: the binary is one of its scripts.
func (r *release) wheel(b *build) error {
	base, tags := "graphiti_proxy-"+r.version.python, wheelTags[b.OS+"/"+b.Arch]
	data, info := base+".data/", base+".dist-info/"
	about := "Wheel-Version: 1.0\nGenerator: graphiti-proxy\nRoot-Is-Purelib: false\n"
	for tag := range strings.SplitSeq(tags, ".") {
		about += "Tag: py3-none-" + tag + "\n"
	}
	files := slices.Concat([]file{
		b.binary(data + "scripts/"),
		{name: info + "WHEEL", mode: 0o644, body: []byte(about)},
		{name: info + "METADATA", mode: 0o644, body: fmt.Appendf(nil, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nProject-URL: Homepage, %s\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: LICENSES.txt\nRequires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n%[3]s. Documentation: %[4]s\n", name, r.version.python, summary, homepage)},
		{name: info + "licenses/LICENSE", mode: 0o644, body: r.paper("LICENSE").body},
		{name: info + "licenses/" + licenses, mode: 0o644, body: r.paper(licenses).body},
	}, under(data+"data/share/man/man1/", r.man))
	for _, s := range r.shell {
		if dir := map[string]string{".bash": "bash-completion/completions/", "": "zsh/site-functions/", ".fish": "fish/vendor_completions.d/"}[filepath.Ext(s.name)]; dir != "" {
			s.name = data + "data/share/" + dir + strings.TrimSuffix(s.name, ".bash")
			files = append(files, s)
		}
	}
	var record strings.Builder
	for _, f := range sorted(files) {
		h := sha256.Sum256(f.body)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(h[:]), len(f.body))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	body, err := zipped(r.at, append(files, file{name: info + "RECORD", mode: 0o644, body: []byte(record.String())}))
	if err != nil {
		return err
	}
	return r.save(base+"-py3-none-"+tags+".whl", body)
}
