package graphiti

import (
	"slices"
	"strings"
)

// Also names groups of other clients that recall searches too. The proxy never writes to
// them or deletes them.
type Also struct {
	Names  []string // may contain {directory}, {login} and {user}
	Home   string   // home directory of the operator; its last part is {login}
	Proven bool     // only proven callers read the groups
}

// AlsoReads appends the groups of Also to a caller's reads. Callers without groups and
// system actors get none. A group is personal if its name contains {login} or {user}, or
// if the caller is in no project.
func (n Namer) AlsoReads(w Who, reads []Target) []Target {
	if len(reads) == 0 || w.SystemActor != "" || n.Also.Proven && !w.Proven {
		return reads
	}
	for _, name := range n.Also.Names {
		scope := ScopeWorkspace
		if w.Workspace == "" || strings.Contains(name, "{login}") || strings.Contains(name, "{user}") {
			scope = ScopeUser
		}
		group, ok := n.Also.fill(name, w)
		if ok && !slices.ContainsFunc(reads, func(t Target) bool { return t.Group == group }) {
			reads = append(reads, Target{scope, group})
		}
	}
	return reads
}

// fill expands a group name. ok is false if a value is missing. In directories and logins,
// "_" replaces characters that Graphiti rejects, as in other clients. A person's name must
// be valid already and must not contain "__", so that people never share a group. The
// result must not be a group of another caller.
func (a Also) fill(name string, w Who) (group string, ok bool) {
	user := strings.TrimPrefix(w.User, "user:")
	if strings.ContainsFunc(user, func(r rune) bool { return !inID(r) }) || strings.Contains(user, "__") {
		user = ""
	}
	directory := w.Directory
	if path, ok := strings.CutPrefix(w.Workspace, PathPrefix); ok && directory == "" { // of X-Graphiti-Workspace
		directory = path
	}
	ours := !free(unfilled.Replace(name))
	for _, f := range []struct{ what, with string }{
		{"{directory}", asID(lastPart(directory))}, {"{login}", asID(lastPart(a.Home))}, {"{user}", user},
	} {
		if strings.Contains(name, f.what) && f.with == "" {
			return "", false
		}
		name = strings.ReplaceAll(name, f.what, f.with)
	}
	return name, CheckGroup(name) == nil && (ours || free(name))
}

// unfilled replaces all placeholders.
var unfilled = strings.NewReplacer("{directory}", "x", "{login}", "x", "{user}", "x")

// lastPart returns the last non-empty part of a path, without surrounding spaces.
func lastPart(path string) string {
	path = strings.TrimRight(path, "/")
	return strings.TrimSpace(path[strings.LastIndexByte(path, '/')+1:])
}
