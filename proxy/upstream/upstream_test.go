package upstream

import (
	"crypto/tls"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
)

// set has groq beside the servers of the APIs.
func set(t testing.TB) Set {
	t.Helper()
	bases := map[string]string{"groq": "https://groq.example"}
	for _, name := range registry.Upstreams {
		bases[name] = "https://" + name + ".example"
	}
	s, err := New(bases, &tls.Config{MinVersion: tls.VersionTLS12}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNameInAnotherSpelling: what names a server, however it is spelt, never goes to
// another one.
func TestNameInAnotherSpelling(t *testing.T) {
	s := set(t)
	for target, want := range map[string]struct {
		named, found bool
		rest         string
	}{
		"/u/groq/v1/models":              {true, true, "/v1/models"},
		"/u/groq/v1?x=/u/":               {true, true, "/v1?x=/u/"},
		"http://h/u/groq/v1":             {true, true, "/v1"},
		"/u/other/v1":                    {true, false, ""},
		"/u/openai/v1":                   {true, false, ""},
		"//u/groq/v1":                    {true, false, ""},
		"/./u/groq/v1":                   {true, false, ""},
		"/U/groq/v1":                     {true, false, ""},
		"/u/groq":                        {true, false, ""},
		"/u/groq?x":                      {true, false, ""},
		"/u":                             {true, false, ""},
		"/u/":                            {true, false, ""},
		"/u//groq/v1":                    {true, false, ""},
		"/%75/groq/v1":                   {true, false, ""},
		"/%2575/groq/v1":                 {true, false, ""},
		"/%2fu/groq/v1":                  {true, false, ""},
		"/u%2Fgroq/v1":                   {true, false, ""},
		"/x/../u/groq/v1":                {true, false, ""},
		"/v1/../u/groq/v1":               {true, false, ""},
		`/\u\groq/v1`:                    {true, false, ""},
		"http://h//u/groq/v1":            {true, false, ""},
		"/v1/chat/completions":           {false, false, ""},
		"/v1/u/groq/models":              {false, false, ""},
		"/users":                         {false, false, ""},
		"/v1/models?path=/u/groq/v1":     {false, false, ""},
		"/v1/files/a%2Fu%2Fgroq/content": {false, false, ""},
		"/v1/%zz/u/groq":                 {false, false, ""},
		"/":                              {false, false, ""},
	} {
		var h fasthttp.RequestHeader
		h.SetRequestURI(target)
		name, u := s.Named(&h)
		if (name != "") != want.named || (u != nil) != want.found {
			t.Errorf("%s names %q, found %v", target, name, u != nil)
		}
		rest := target
		if want.found {
			rest = want.rest
		}
		if got := string(h.RequestURI()); got != rest {
			t.Errorf("%s is forwarded as %s", target, got)
		}
	}
}

// FuzzNamed: a request goes to a server with a name only where its path begins with
// it as it stands, and what begins so in any spelling goes nowhere else.
func FuzzNamed(f *testing.F) {
	for _, seed := range []string{"/u/groq/v1", "//u/groq", "/%75/groq", "/U/GROQ/x", "/a/../u/groq", "/v1/models"} {
		f.Add(seed)
	}
	s := set(f)
	f.Fuzz(func(t *testing.T, target string) {
		var h fasthttp.RequestHeader
		h.SetRequestURI(target)
		before := string(h.RequestURI())
		name, u := s.Named(&h)
		switch {
		case u == nil && string(h.RequestURI()) != before:
			t.Errorf("%q became %q", before, h.RequestURI())
		case u != nil && (name != "groq" || misspelt([]byte(before)) != "groq"):
			t.Errorf("%q goes to %s", before, name)
		case name == "" && misspelt([]byte(before)) != "":
			t.Errorf("%q names %s, and goes to the default server", before, misspelt([]byte(before)))
		}
	})
}
