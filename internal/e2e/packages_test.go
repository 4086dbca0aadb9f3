//go:build e2e

package e2e

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestPackages makes the packages of the last commit for this machine twice, in two clones,
// and installs them from these files alone. Each one runs the demo.
func TestPackages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(in, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	release := filepath.Join(dir, "release")
	must("../..", "go", "build", "-o", release, "./deploy/release")
	sums := make(map[string]string)
	for _, clone := range []string{"a", "another"} {
		must("../..", "git", "clone", "--quiet", ".", filepath.Join(dir, clone))
		must(filepath.Join(dir, clone), release, "-platforms", runtime.GOOS+"/"+runtime.GOARCH)
		sums[clone] = read(t, filepath.Join(dir, clone, "dist", "checksums.txt"))
	}
	if sums["a"] != sums["another"] {
		t.Errorf("got different files in two clones of a commit:\n%s\n%s", sums["a"], sums["another"])
	}
	dist := filepath.Join(dir, "a", "dist")
	one := func(pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dist, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("got %q, %v, want one %s", found, err, pattern)
		}
		return found[0]
	}
	if rpm := read(t, one("*.rpm")); !strings.HasPrefix(rpm, "\xed\xab\xee\xdb") {
		t.Error("the package for Fedora has no magic number of RPM")
	}
	one("*.apk")
	readme := read(t, "../../README.md")
	t.Run("dpkg", func(t *testing.T) { installDeb(t, t.TempDir(), one("*.deb")) })
	t.Run("npx", func(t *testing.T) { runFromNPM(t, command(t, readme, "npx"), dist) })
	t.Run("pip", func(t *testing.T) {
		home := t.TempDir()
		remembers(t, home, nil, "python3", "-m", "pip", "install", "--no-index", "--quiet", "--ignore-installed", "--root-user-action=ignore", "--prefix="+home, one("*.whl"))
		remembers(t, home, nil, filepath.Join(home, "bin", "graphiti-proxy"), "demo")
		for _, f := range []string{"man/man1/graphiti-proxy.1", "zsh/site-functions/_graphiti-proxy", "bash-completion/completions/graphiti-proxy"} {
			if _, err := os.Stat(filepath.Join(home, "share", f)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("uvx", func(t *testing.T) {
		uvx, err := filepath.Abs(".cache/validate/bin/uvx")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(uvx); err != nil {
			t.Skip("SKIPPED LOUDLY: uv is not installed; run internal/e2e/install.sh")
		}
		env := []string{"UV_OFFLINE=1", "UV_NO_INDEX=1", "UV_PRERELEASE=allow", "UV_FIND_LINKS=" + dist, "UV_PYTHON_DOWNLOADS=never"}
		remembers(t, t.TempDir(), env, uvx, command(t, readme, "uvx")...)
	})
}

// command returns the arguments of a program in the README.
func command(t *testing.T, readme, program string) []string {
	t.Helper()
	m := regexp.MustCompile("`" + program + " (graphiti-proxy demo)`").FindStringSubmatch(readme)
	if m == nil {
		t.Fatalf("the README has no command for %s", program)
	}
	return strings.Fields(m[1])
}

// remembers runs a program in a fresh home. The demo must show a memory.
func remembers(t *testing.T, home string, env []string, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = home
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil || args[len(args)-1] == "demo" && !bytes.Contains(out, []byte("The memory arrived.")) {
		t.Fatalf("%s %s: got %v\n%s\nwant no error, and that the memory arrived", program, strings.Join(args, " "), err, out)
	}
}

// runFromNPM runs the package from a registry that has nothing but the files in dist.
func runFromNPM(t *testing.T, args []string, dist string) {
	t.Helper()
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skip("SKIPPED LOUDLY: npx is not installed")
	}
	packed, err := filepath.Glob(filepath.Join(dist, "*.tgz"))
	if err != nil || len(packed) != 2 {
		t.Fatalf("got %q, %v, want the launcher and one binary", packed, err)
	}
	documents := make(map[string]map[string]any)
	mux := http.NewServeMux()
	registry := httptest.NewServer(mux)
	defer registry.Close()
	for _, file := range packed {
		text, err := exec.Command("tar", "-xzOf", file, "package/package.json").Output()
		if err != nil {
			t.Fatal(err)
		}
		var about map[string]any
		must(t, json.Unmarshal(text, &about))
		sum := sha512.Sum512([]byte(read(t, file)))
		about["dist"] = map[string]string{"tarball": registry.URL + "/-/" + filepath.Base(file), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		version, _ := about["version"].(string)
		name, _ := about["name"].(string)
		documents["/"+name] = map[string]any{"name": name, "dist-tags": map[string]string{"latest": version}, "versions": map[string]any{version: about}}
	}
	mux.Handle("/-/", http.StripPrefix("/-/", http.FileServer(http.Dir(dist))))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if d := documents[r.URL.Path]; d != nil {
			_ = json.NewEncoder(w).Encode(d)
			return
		}
		http.NotFound(w, r)
	})
	home := t.TempDir()
	env := []string{"npm_config_registry=" + registry.URL, "npm_config_cache=" + filepath.Join(home, "cache"), "npm_config_update_notifier=false", "npm_config_yes=true"}
	remembers(t, home, env, "npx", args...)
}

// installDeb installs, runs and removes a package below a directory.
func installDeb(t *testing.T, dir, deb string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("SKIPPED LOUDLY: only root installs a package, and with dpkg")
	}
	root := filepath.Join(dir, "root")
	for _, sub := range []string{"info", "updates"} {
		must(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", sub), 0o755))
	}
	write(t, "", root, "var/lib/dpkg/status")
	must := func(says, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "GRAPHITI_PROXY_DATA_DIR="+filepath.Join(dir, "data"))
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(says)) {
			t.Fatalf("%s %s: got %v\n%s, want no error, %q in it", name, strings.Join(args, " "), err, out, says)
		}
	}
	must("", "dpkg", "--root="+root, "--force-script-chrootless", "-i", deb)
	installed, config := filepath.Join(root, "usr/bin/graphiti-proxy"), filepath.Join(root, "etc/graphiti-proxy/config.yaml")
	must("The memory arrived.", installed, "demo")
	must("the configuration is valid", installed, "config", "check", "--config", config)
	must("man1/graphiti-proxy.1", "dpkg-query", "--admindir="+root+"/var/lib/dpkg", "-L", "graphiti-proxy")
	must("bash-completion/completions/graphiti-proxy", "dpkg-query", "--admindir="+root+"/var/lib/dpkg", "-L", "graphiti-proxy")
	if unit := read(t, filepath.Join(root, "usr/lib/systemd/system/graphiti-proxy.service")); !strings.Contains(unit, "ExecStart=/usr/bin/graphiti-proxy serve --config /etc/graphiti-proxy/config.yaml") {
		t.Errorf("the unit starts something else:\n%s", unit)
	}
	write(t, "listen: 127.0.0.1:1\n", config)
	must("", "dpkg", "--root="+root, "--force-script-chrootless", "-r", "graphiti-proxy")
	if _, err := os.Stat(installed); err == nil || read(t, config) != "listen: 127.0.0.1:1\n" {
		t.Error("the program is left, or what somebody has written is not")
	}
}
