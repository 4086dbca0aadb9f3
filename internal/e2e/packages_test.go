//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestPackages builds the packages that goreleaser.yaml describes, with the
// binary as it is, and installs and removes the one for Debian in a directory.
func TestPackages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nfpm"); err != nil {
		t.Skip("SKIPPED LOUDLY: nfpm is not installed; run internal/e2e/install.sh")
	}
	var release struct{ NFPMs []map[string]any }
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/goreleaser.yaml")), &release); err != nil || len(release.NFPMs) != 1 {
		t.Fatalf("got %+v, %v, want no error, 1 nfpms", release, err)
	}
	described := release.NFPMs[0]
	contents, _ := described["contents"].([]any)
	bindir, _ := described["bindir"].(string)
	described["contents"] = append(contents, map[string]any{"src": binary, "dst": filepath.Join(bindir, "graphiti-proxy"), "file_info": map[string]int{"mode": 0o755}})
	described["name"], described["arch"], described["version"] = described["package_name"], runtime.GOARCH, "1.2.3"
	formats, _ := described["formats"].([]any)
	for _, key := range []string{"package_name", "file_name_template", "formats", "bindir"} { // goreleaser's own
		delete(described, key)
	}
	text, err := yaml.Marshal(described)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "nfpm.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range formats {
		cmd := exec.Command("nfpm", "package", "--config", config, "--packager", format.(string), "--target", filepath.Join(dir, "graphiti-proxy."+format.(string)))
		cmd.Dir = "../.." // which the sources are named from
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", format, err, out)
		}
	}
	if rpm := read(t, filepath.Join(dir, "graphiti-proxy.rpm")); !strings.HasPrefix(rpm, "\xed\xab\xee\xdb") {
		t.Error("the package for Fedora is none")
	}
	installDeb(t, dir, filepath.Join(dir, "graphiti-proxy.deb"))
}

// installDeb installs, runs and removes a package below a directory.
func installDeb(t *testing.T, dir, deb string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Skip("SKIPPED LOUDLY: only root installs a package, and with dpkg")
	}
	root := filepath.Join(dir, "root")
	for _, sub := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	must("graphiti-proxy", installed, "--version")
	must("the configuration is valid", installed, "config", "check", "--config", config)
	must("1.2.3", "dpkg-query", "--admindir="+root+"/var/lib/dpkg", "-W", "graphiti-proxy")
	if unit := read(t, filepath.Join(root, "usr/lib/systemd/system/graphiti-proxy.service")); !strings.Contains(unit, "ExecStart=/usr/bin/graphiti-proxy serve --config /etc/graphiti-proxy/config.yaml") {
		t.Errorf("the unit starts something else:\n%s", unit)
	}
	if err := os.WriteFile(config, []byte("listen: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must("", "dpkg", "--root="+root, "--force-script-chrootless", "-r", "graphiti-proxy")
	if _, err := os.Stat(installed); err == nil || read(t, config) != "listen: 127.0.0.1:1\n" {
		t.Error("the program is left, or what somebody has written is not")
	}
}
