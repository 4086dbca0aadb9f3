package redact

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// random resembles a generated key. Tests build their secrets from it at run time, so that
// secret scanners do not report them.
const random = "q7Zk2mX9vB4tLw8RnY3cH6jDfG5sPaU1eTz0oKiVxQyM"

func mixed(n int) string { return strings.Repeat(random, 1+n/len(random))[:n] }
func hexed(n int) string { return strings.Repeat("9f8b3c0d7e2a41564bd1", 10)[:n] }
func small(n int) string { return strings.ToLower(mixed(n)) }
func onlyLetters(n int) string {
	return strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace(mixed(n))
}

// unescaped makes a line of a corpus the text that it stands for.
var unescaped = strings.NewReplacer(`\\n`, `\n`, `\n`, "\n")

// corpus returns the lines of a file of testdata, without comments.
func corpus(t testing.TB, name string) (lines []string) {
	t.Helper()
	b := helptest.File(t, filepath.Join("testdata", name))
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// secretText is a text around a secret to redact.
type secretText struct{ name, before, secret, after string }

func secretsInText(t testing.TB) (list []secretText) {
	t.Helper()
	for _, line := range corpus(t, "secrets.txt") {
		name, text, _ := strings.Cut(line, "  ")
		before, rest, _ := strings.Cut(text, "«")
		secret, after, marked := strings.Cut(rest, "»")
		if !marked {
			t.Fatalf("%q has no secret", line)
		}
		list = append(list, secretText{name, unescaped.Replace(before), filled(secret), unescaped.Replace(after)})
	}
	return list
}
