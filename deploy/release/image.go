package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const nonRoot = 65532 // the user of deploy/Dockerfile

// image writes a container image that docker load and podman load read. It contains the
// binary, certificates and time zones, as the image of deploy/Dockerfile.
func (r *release) image(b *build) error {
	files, err := r.rootFiles(b)
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	if err := writeTar(&plain, r.at, files); err != nil {
		return err
	}
	created := r.at.UTC().Format("2006-01-02T15:04:05Z")
	config, err := json.Marshal(map[string]any{
		"created": created, "os": b.OS, "architecture": b.Arch,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(plain.Bytes())}},
		"history": []any{map[string]string{"created": created, "created_by": "deploy/release"}},
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%[1]d", nonRoot), "Entrypoint": []string{"/" + name}, "Cmd": []string{"serve"},
			"Env":          []string{"GRAPHITI_PROXY_DATA_DIR=/data", "HOME=/data", "ZONEINFO=/etc/zoneinfo.zip"},
			"ExposedPorts": map[string]any{"8787/tcp": struct{}{}, "8788/tcp": struct{}{}}, "Volumes": map[string]any{"/data": struct{}{}},
			"Healthcheck": map[string]any{"Test": []string{"CMD", "/" + name, "status", "--health"}, "Interval": 10e9, "Timeout": 3e9, "StartPeriod": 5e9},
			"Labels":      map[string]string{"org.opencontainers.image.source": homepage, "org.opencontainers.image.version": r.version.semver, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
	})
	if err != nil {
		return err
	}
	layer, err := tarGz(r.at, files)
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{name + ":" + r.version.semver}, "Layers": []string{"layer.tar.gz"}}})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, r.at, []file{
		{name: "manifest.json", mode: 0o644, body: manifest}, {name: "config.json", mode: 0o644, body: config}, {name: "layer.tar.gz", mode: 0o644, body: layer},
	}); err != nil {
		return err
	}
	return r.save(fmt.Sprintf("%s_%s_%s_%s_image.tar", name, r.version.semver, b.OS, b.Arch), archive.Bytes())
}

func (r *release) rootFiles(b *build) ([]file, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot express a constraint
			if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's time zones: %w", err)
	}
	zones, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	return []file{
		b.binary(""), r.paper("LICENSE"),
		{name: "data/", mode: 0o700, owner: nonRoot}, {name: "tmp/", mode: 0o1777}, {name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, body: fmt.Appendf(nil, "nonroot:x:%d:%[1]d::/data:/sbin/nologin\n", nonRoot)},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: roots.Bytes()}, {name: "etc/zoneinfo.zip", mode: 0o644, body: zones},
	}, nil
}
