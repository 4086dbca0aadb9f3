package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"text/template"
)

// component is an entry of an SBOM in CycloneDX's form.
type component struct {
	Type    string         `json:"type"`
	Ref     string         `json:"bom-ref"`
	Name    string         `json:"name"`
	Version string         `json:"version"`
	PURL    string         `json:"purl"`
	Hashes  []bomHash      `json:"hashes,omitempty"`
	License []bomExpressed `json:"licenses,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type bomExpressed struct {
	Expression string `json:"expression"`
}

// newComponent returns a Go module. Its hash is that of go.sum.
func newComponent(kind string, m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: kind, Ref: url, Name: m.Path, Version: m.Version, PURL: url}
	if h, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(h) > 0 {
		c.Hashes = []bomHash{{"SHA-256", hex.EncodeToString(h)}}
	}
	return c
}

// bom writes the list of the modules in a binary, from the binary itself.
func (r *release) bom(b *build) error {
	self := newComponent("application", &b.info.Main)
	self.Hashes, self.License = []bomHash{{"SHA-256", sum(b.body)}}, []bomExpressed{{"Apache-2.0"}}
	parts := []component{newComponent("library", &debug.Module{Path: "std", Version: strings.TrimPrefix(b.info.GoVersion, "go")})}
	for _, m := range b.info.Deps {
		parts = append(parts, newComponent("library", m))
	}
	refs := make([]string, len(parts))
	for i, p := range parts {
		refs[i] = p.Ref
	}
	return r.saveJSON(name+"_"+r.version.semver+"_"+b.OS+"_"+b.Arch+".cdx.json", map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": r.at, "component": self},
		"components": parts, "dependencies": []any{map[string]any{"ref": self.Ref, "dependsOn": refs}},
	})
}

func (r *release) saveJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return r.save(name, append(text, '\n'))
}

//go:embed templates/*.tmpl
var templates embed.FS

// manifests writes the manifests of package managers that download an archive.
func (r *release) manifests() error {
	t, err := template.ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return err
	}
	for _, t := range t.Templates() {
		var b bytes.Buffer
		if err := t.Execute(&b, map[string]any{
			"Version": r.version.semver, "Date": r.at.UTC().Format("2006-01-02"), "Summary": summary, "Homepage": homepage,
			"Base": homepage + "/releases/download/v" + r.version.semver, "Builds": r.builds,
		}); err != nil {
			return err
		}
		if err := r.save(strings.TrimSuffix(t.Name(), ".tmpl"), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// subject is a file in the provenance.
type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// seal writes the provenance of all files, and then their checksums.
func (r *release) seal() error {
	made, err := r.subjects()
	if err != nil {
		return err
	}
	script := homepage + "/tree/main/deploy/release"
	if err := r.saveJSON(name+"_"+r.version.semver+".provenance.json", map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": made, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            script,
				"externalParameters":   map[string]any{"version": r.version.semver, "changed_after_checkout": r.changedAfterCheckout},
				"internalParameters":   map[string]string{"go": r.goVersion},
				"resolvedDependencies": []any{map[string]any{"uri": "git+" + homepage, "digest": map[string]string{"gitCommit": r.commit}}},
			},
			"runDetails": map[string]any{"builder": map[string]string{"id": script}},
		},
	}); err != nil {
		return err
	}
	if made, err = r.subjects(); err != nil {
		return err
	}
	var sums strings.Builder // in the form of sha256sum
	for _, s := range made {
		sums.WriteString(s.Digest["sha256"] + "  " + s.Name + "\n")
	}
	return r.save("checksums.txt", []byte(sums.String()))
}

// subjects returns the files of the release so far.
func (r *release) subjects() (all []subject, err error) {
	there, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	for _, f := range there {
		body, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, subject{f.Name(), map[string]string{"sha256": sum(body)}})
	}
	return all, nil
}
