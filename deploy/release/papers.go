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

// component returns a Go module as an entry of an SBOM in CycloneDX's form. Its hash is that of go.sum.
func component(kind string, m *debug.Module) map[string]any {
	if m.Replace != nil {
		m = m.Replace
	}
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := map[string]any{"type": kind, "bom-ref": url, "name": m.Path, "version": m.Version, "purl": url}
	if h, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(h) > 0 {
		c["hashes"] = hashed(hex.EncodeToString(h))
	}
	return c
}

func hashed(sum string) []any { return []any{map[string]any{"alg": "SHA-256", "content": sum}} }

// bom writes the list of the modules in a binary, from the binary itself.
func (r *release) bom(b *build) error {
	self := component("application", &b.info.Main)
	self["hashes"], self["licenses"] = hashed(sum(b.body)), []any{map[string]any{"expression": "Apache-2.0"}}
	var parts, refs []any
	for _, m := range append([]*debug.Module{{Path: "std", Version: strings.TrimPrefix(b.info.GoVersion, "go")}}, b.info.Deps...) {
		part := component("library", m)
		parts, refs = append(parts, part), append(refs, part["bom-ref"])
	}
	return r.saveJSON(name+"_"+r.version.semver+"_"+b.OS+"_"+b.Arch+".cdx.json", map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": r.at, "component": self},
		"components": parts, "dependencies": []any{map[string]any{"ref": self["bom-ref"], "dependsOn": refs}},
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

// seal writes the checksums of all files, in the form of sha256sum.
func (r *release) seal() error {
	made, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range made {
		body, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		sums.WriteString(sum(body) + "  " + f.Name() + "\n")
	}
	return r.save("checksums.txt", []byte(sums.String()))
}
