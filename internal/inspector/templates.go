package inspector

import (
	"embed"
	"html/template"
	"path"
	"strings"
)

//go:embed templates
var templateFiles embed.FS

// both passes two values to a template with one parameter.
type both struct{ A, B any }

// functions are available in templates.
var functions = template.FuncMap{
	"both":    func(a, b any) both { return both{a, b} },
	"n":       grouped,
	"count":   counted,
	"line":    oneLine,
	"utc":     utc,
	"moment":  isMoment,
	"ms":      took,
	"scope":   scopeOf,
	"kind":    kindOf,
	"outcome": outcomeOf,
	"origin":  sourceOf,
	"role":    roleOf,
	"api":     apiOf,
	"say":     sentence,
}

// parseTemplates parses each page together with the shared templates.
func parseTemplates() (map[string]*template.Template, error) {
	base, err := template.New("").Funcs(functions).ParseFS(templateFiles, "templates/shared/*.html")
	if err != nil {
		return nil, err
	}
	names, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	pages := make(map[string]*template.Template)
	for _, name := range names {
		if name.IsDir() {
			continue
		}
		own, err := base.Clone()
		if err == nil {
			own, err = own.ParseFS(templateFiles, path.Join("templates", name.Name()))
		}
		if err != nil {
			return nil, err
		}
		pages[strings.TrimSuffix(name.Name(), ".html")] = own
	}
	return pages, nil
}
