package wire

import (
	"bytes"
	"testing"
)

func TestPlainPath(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/models":            "/v1/models",
		"/v1/models?a=/../%2F":  "/v1/models",
		"/v1/models#x":          "/v1/models",
		"http://h/v1/x":         "/v1/x",
		"http://h":              "/",
		"":                      "/",
		"/":                     "/",
		"*":                     "/*",
		"//a///b//":             "/a/b/",
		"/a/./b/.":              "/a/b/",
		"/a/../b/..":            "/",
		"/a/b/..":               "/a/",
		"/../../a":              "/a",
		"/.well-known/...":      "/.well-known/...",
		"/%61%2fb%2E%2e/c":      "/a/b../c",
		"/a/%2e%2E/b":           "/b",
		"/%2561":                "/a",
		"/%25%36%31":            "/a",
		"/%zz%6":                "/%zz%6",
		"\\a\\b":                "/a/b",
		"/models/a:generateX":   "/models/a:generateX",
		"/models/a%3AgenerateX": "/models/a:generateX",
	} {
		if got := string(PlainPath([]byte(target))); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}

// FuzzPlainPath checks that a plain path has no duplicate slash, dot segment, decodable
// escape or backslash left, and that PlainPath does not change it again.
func FuzzPlainPath(f *testing.F) {
	for _, s := range []string{"/u/x", "//%2575/./..\\x?y", "http://h/%", "%%2525", "/.a/..b/%2f"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, target []byte) {
		before := bytes.Clone(target)
		got := PlainPath(target)
		if !bytes.Equal(target, before) {
			t.Fatal("the target was changed")
		}
		if got[0] != '/' || bytes.Contains(got, []byte("//")) || bytes.Contains(got, []byte("/./")) || bytes.Contains(got, []byte("/../")) || bytes.Contains(got, []byte("%75")) || bytes.IndexByte(got, '\\') >= 0 {
			t.Fatalf("got %q, want a path that is not decoded or cleaned any further", got)
		}
		if again := PlainPath(got); !bytes.ContainsAny(got, "?#") && !bytes.Equal(again, got) {
			t.Fatalf("%q is %q", got, again)
		}
	})
}
