// Package place owns how clients state, in prompts and in messages of their own,
// where they work.
//
// It reads texts, and must not know how they stand in a request or whose message
// they are of. It imports none of our packages.
package place

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
)

// Place is where a client says that it works.
type Place struct {
	Directory string // an absolute path; empty when it does not say
	Repo      string // owner/name on GitHub, where it names that

	// Unclear says that several places are named, and that which of them the
	// client itself wrote cannot be told: a file of the repository may have.
	Unclear bool
}

// maxPath bounds a path, in bytes.
const maxPath = 4096

// Statements are what was found of a place, in prompts and in the items of
// clients. The zero Statements are ready.
type Statements struct {
	own    stated // in a prompt, in the form and position that a client writes
	loose  stated // in a prompt, on a line that looks like one
	quoted claim  // on such a line, in what a prompt quotes from files
	item   string // of the newest item in which a client says nothing else
	items  bool   // there was one
	parts  claim  // in what may be such an item, or a file that a person attached
}

// Merge adds what another prompt states.
func (s *Statements) Merge(q Statements) {
	s.own.dir.merge(q.own.dir)
	s.own.repo.merge(q.own.repo)
	s.loose.dir.merge(q.loose.dir)
	s.loose.repo.merge(q.loose.repo)
	s.quoted.merge(q.quoted)
}

type stated struct{ dir, repo claim }

// Place decides. A client that states its place in items means those. All of
// the others' statements have to agree: who wrote which cannot be told.
func (s *Statements) Place(codex bool) (p Place) {
	switch {
	case s.items:
		p = Place{Directory: s.item, Unclear: s.item == "" || !codex && !s.own.dir.fits(s.item)}
	case codex: // which says it in items only
	case s.own.dir.value != "":
		p = s.own.place()
	default:
		p = s.loose.place()
		p.Unclear = p.Unclear || !s.quoted.fits(p.Directory)
	}
	if p.Unclear || !s.parts.fits(p.Directory) {
		return Place{Unclear: true}
	}
	return p
}

func (s *stated) place() Place {
	return Place{Directory: s.dir.value, Repo: s.repo.value, Unclear: s.dir.several || s.repo.several}
}

// claim is a value that is stated once or several times.
type claim struct {
	value   string
	several bool // different ones are
}

func (c *claim) add(v string) {
	c.several = c.several || c.value != "" && c.value != v
	c.value = v
}

func (c *claim) merge(q claim) {
	if q.value != "" {
		c.add(q.value)
	}
	c.several = c.several || q.several
}

// fits reports whether nothing but v is stated.
func (c *claim) fits(v string) bool { return !c.several && (c.value == "" || c.value == v) }

// State notes what an item says in which the client says nothing else: the
// newest counts, and an empty one says that there are several.
func (s *Statements) State(dir string) { s.item, s.items = dir, true }

// Doubt notes what may be such an item, or a file that a person attached.
func (s *Statements) Doubt(dir string) { s.parts.add(dir) }

// Size is about how much memory the statements take.
func (s *Statements) Size() (n int) {
	for _, c := range []*claim{&s.own.dir, &s.own.repo, &s.loose.dir, &s.loose.repo, &s.quoted, &s.parts} {
		n += len(c.value)
	}
	return n + len(s.item)
}

// marks stand in every statement of a place, however a body spells what
// is around them.
var marks = [][]byte{[]byte("irectory"), []byte("cwd")}

// Marked reports whether a place can be stated in a text, as it stands in a JSON
// string: most prompts name none, and are long. escapes says that characters
// may be written as \u0064.
func Marked(raw []byte, escapes bool) bool {
	if escapes && bytes.Contains(raw, []byte(`\u00`)) {
		return true // which may spell a letter
	}
	for _, mark := range marks {
		if bytes.Contains(raw, mark) {
			return true
		}
	}
	return false
}

// directoryIn is the directory that a line names; empty when it names none.
func directoryIn(re *regexp.Regexp, line []byte) string {
	if len(line) > maxPath+100 {
		return ""
	}
	if m := re.FindSubmatch(line); m != nil {
		return CleanDirectory(string(m[1]))
	}
	return ""
}

// CleanDirectory takes quotes off, and refuses what is no absolute path.
func CleanDirectory(s string) string {
	s = strings.Trim(strings.TrimSpace(s), "`'\"")
	absolute := strings.HasPrefix(s, "/") || len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	if !absolute || len(s) > maxPath || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return ""
	}
	return filepath.Clean(s)
}
