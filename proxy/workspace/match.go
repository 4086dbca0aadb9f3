package workspace

import (
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Key returns the workspace key of the repository with an address; empty for an address
// without a meaning on other machines, such as a path.
func Key(remote string) string {
	key, ok := graphiti.WorkspaceKey(remote)
	if !ok || !strings.HasPrefix(key, graphiti.RepoPrefix) {
		return ""
	}
	return key
}

// Within reports whether a directory is path, or below it.
func Within(path, directory string) bool {
	return path == directory || strings.HasPrefix(directory, strings.TrimSuffix(path, "/")+"/")
}

// MatchAny reports whether one of the names matches one of the patterns, in which *
// matches any text. An empty name matches no pattern.
func MatchAny(patterns []string, names ...string) bool {
	return len(patterns) > 0 && slices.ContainsFunc(names, func(n string) bool { return n != "" && Match(patterns, n) })
}

// Match reports whether s matches one of the patterns.
func Match(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, s) })
}

// match reports whether s matches a pattern, in which * matches any text.
func match(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
}
