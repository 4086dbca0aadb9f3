package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLicenses checks that the licenses of all modules in the program are in it.
func TestLicenses(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "-tags", "grpcnotrace", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "../../graphiti-proxy").Output()
	must(t, err)
	modules := strings.Fields(strings.ReplaceAll(string(out), " ", "@"))
	if len(modules) == 0 {
		t.Fatal("no modules")
	}
	for _, m := range modules {
		if name := strings.Replace(m, "@", " ", 1); !strings.Contains(licenses, "\n"+name+"\n") {
			t.Errorf("the license of %s is missing; run go generate ./cmd/internal/cli", name)
		}
	}
}
