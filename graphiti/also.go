package graphiti

import (
	"slices"
	"strings"
)

// Also names groups that other clients write to, and that recall searches beside a
// caller's own. Nothing of ours writes to them or deletes them.
type Also struct {
	Names  []string // in which {directory}, {login} and {user} are filled in
	Home   string   // the home directory of who runs the proxy, whose last part is {login}
	Proven bool     // only callers whose person is proven read them
}

// AlsoReads returns reads, the groups of a caller, and behind them the groups of Also. A
// caller without groups and a system actor get no group of Also. A group is about a
// person if its name has {login} or {user} in it, or if the caller is in no project.
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

// fill returns the name of a group. ok is false if something to fill in is not known. What
// Graphiti does not accept in a directory or a login becomes "_", as other clients have
// it. A person's name must be as it stands, and without the "__" between the parts of a
// name: else two people could have one group. Nor may what is filled in make it a group of
// another caller of ours.
func (a Also) fill(name string, w Who) (group string, ok bool) {
	user := strings.TrimPrefix(w.User, "user:")
	if strings.ContainsFunc(user, func(r rune) bool { return !inID(r) }) || strings.Contains(user, "__") {
		user = ""
	}
	ours := !free(unfilled.Replace(name))
	for _, f := range []struct{ what, with string }{
		{"{directory}", asID(lastPart(w.Directory))}, {"{login}", asID(lastPart(a.Home))}, {"{user}", user},
	} {
		if strings.Contains(name, f.what) && f.with == "" {
			return "", false
		}
		name = strings.ReplaceAll(name, f.what, f.with)
	}
	return name, CheckGroup(name) == nil && (ours || free(name))
}

// unfilled makes a name of one in which nothing is filled in.
var unfilled = strings.NewReplacer("{directory}", "x", "{login}", "x", "{user}", "x")

// lastPart returns the last part of a path that is not empty, without spaces around it.
func lastPart(path string) string {
	path = strings.TrimRight(path, "/")
	return strings.TrimSpace(path[strings.LastIndexByte(path, '/')+1:])
}
