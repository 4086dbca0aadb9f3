package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// TestRead checks the work in one round, in the shapes of recorded requests.
func TestRound(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments, result string
		isError           bool
		want              Done
	}{
		"Claude Code, failed":   {`{"command":"npm test","description":"d"}`, "Exit code 3\nno", true, Done{Lines: []string{`ran "npm test": failed (exit 3)`}}},
		"Claude Code":           {`{"command":"npm test"}`, "ok", false, Done{Lines: []string{`ran "npm test": outcome unknown`}}},
		"Codex":                 {`{"cmd":"go test ./..."}`, "Chunk ID: 088084\nProcess exited with code 0\nOutput:\nok", false, Done{Lines: []string{`ran "go test ./...": passed`}}},
		"Copilot CLI":           {`{"command":"make"}`, "no\n<shellId: 0 completed with exit code 2>", false, Done{Lines: []string{`ran "make": failed (exit 2)`}}},
		"Gemini CLI":            {`{"command":"make"}`, "Output: x\nExit Code: 1", false, Done{Lines: []string{`ran "make": failed (exit 1)`}}},
		"Hermes":                {`{"command":"make"}`, `{"output":"x","exit_code":0}`, false, Done{Lines: []string{`ran "make": passed`}}},
		"in JSON in JSON":       {`{"command":"make"}`, `{"output":"{\"returncode\": 1}"}`, false, Done{Lines: []string{`ran "make": failed (exit 1)`}}},
		"several commands":      {`{"commands":["make","npm test"]}`, "exit code 0", false, Done{Lines: []string{`ran "make": outcome unknown`, `ran "npm test": outcome unknown`}}},
		"a code in the output":  {`{"command":"make"}`, strings.Repeat("x", 500) + "exit code 1" + strings.Repeat("x", 500), false, Done{Lines: []string{`ran "make": outcome unknown`}}},
		"a look":                {`{"command":"git status"}`, "exit code 0", false, Done{}},
		"a quotation":           {`{"command":"echo \"x\" && make"}`, "", false, Done{}},
		"an edit":               {`{"file_path":"/p/src/a.py","old_string":"a","new_string":"b"}`, "done", false, Done{Changed: []string{"src/a.py"}, Lines: []string{"changed src/a.py"}}},
		"an edit that failed":   {`{"file_path":"/p/src/a.py","old_string":"a","new_string":"b"}`, "no such text", true, Done{}},
		"an edit elsewhere":     {`{"file_path":"/etc/passwd","old_string":"a","new_string":"b"}`, "done", false, Done{}},
		"a patch in a command":  {`{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.go\n*** End Patch\nEOF"}`, "exit code 0", false, Done{Changed: []string{"a.go"}, Lines: []string{`ran "apply_patch <<…": passed`, "changed a.go"}}},
		"redirected":            {`{"command":"printf x > /p/c.txt && python3 gen.py 2> /dev/null | tee out/d.log"}`, "", false, Done{Changed: []string{"c.txt", "out/d.log"}, Lines: []string{`ran "printf x > c.txt && python3 gen.py 2> /dev/null | tee out/d.log": outcome unknown`, "changed c.txt", "changed out/d.log"}}},
		"a list":                {`{"todos":[{"content":"Do it","status":"pending"}]}`, "ok", false, Done{IsList: true, Tasks: []dialect.Task{{Text: "Do it"}}}},
		"a credential":          {`{"command":"make SECRET"}`, "exit code 0", false, Done{Lines: []string{`ran "make [redacted]": passed`}}},
		"a tool with no action": {`{"city":"Ulm"}`, "sunny", false, Done{}},
	} {
		r := Round{Directory: "/p", Calls: []dialect.Call{{ID: "1", Arguments: tc.arguments}}, Results: []dialect.Result{{ID: "1", Text: tc.result, Failed: tc.isError}}}
		got := r.read(func(text string) string { return strings.ReplaceAll(text, "SECRET", "[redacted]") })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCleaned(t *testing.T) {
	for command, want := range map[string]string{
		"python3 -m pytest -q":                          "python3 -m pytest -q",
		"cd /p/src && API_KEY=abc DEBUG='a b' make all": "make all",
		"make && TOKEN=x npm test":                      "make && npm test",
		"make CC=clang":                                 "make CC=clang",
		"cat <<EOF > a\nsecret\nEOF":                    "cat <<…",
		"mysql -u root -pfoo --password=bar":            "mysql -u … -p… --password=…",
		`curl -H "Authorization: Bearer x" https://u:p@api.example.com:8443/v1/x?k=1`: "curl -H … https://api.example.com:8443/…",
		"cat /home/ann/notes.txt /p/src/a.go ~/x/y":                                   "cat …/notes.txt src/a.go …/y",
		"git config user.email ann@example.com":                                       "git config user.email …",
		"/usr/bin/python3 x.py > /dev/null":                                           "…/python3 x.py > /dev/null",
		"gh auth login --with-token abc":                                              "gh auth login --with-token …",
	} {
		if got := cleaned(command, "/p"); got != want {
			t.Errorf("cleaned(%q) = %q, want %q", command, got, want)
		}
	}
}

// TestCleaned_Addresses checks that a record keeps an address up to its host, with a scheme or
// without.
func TestCleaned_Addresses(t *testing.T) {
	for command, want := range map[string]string{
		"curl hooks.example.com/services/T0AAAA/B0BBBB/n0tForRecords": "curl hooks.example.com/…",
		"curl -d x hooks.example.com:8443?token=abc":                  "curl -d x hooks.example.com:8443/…",
		"wget user:pw@files.example.com/a":                            "wget files.example.com/…",
		"curl 192.0.2.7/secret/path":                                  "curl 192.0.2.7/…",
		"curl localhost:3000/callback?code=abc":                       "curl localhost:3000/…",
		"psql postgres://u:p@db.example.com/x":                        "psql postgres://db.example.com/…",
		"go test ./internal/a.b/c":                                    "go test ./internal/a.b/c",
		"python src/a.py":                                             "python src/a.py",
		"npm test":                                                    "npm test",
	} {
		if got := cleaned(command, "/home/x/p"); got != want {
			t.Errorf("cleaned(%q) = %q, want %q", command, got, want)
		}
	}
}
