package dialect

import (
	"bytes"
	"path/filepath"
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
	prompts stated // in prompts, before they quote files
	quoted  stated // behind that
	newest  string // of the items in which a client says nothing else
	items   claim  // of all of them
	item    bool   // there is one
	parts   claim  // in what may be such an item, or a file that a person attached
}

// Merge adds what another prompt states.
func (s *Statements) Merge(q Statements) {
	s.prompts.merge(q.prompts)
	s.quoted.merge(q.quoted)
}

type stated struct{ dir, repo claim }

func (s *stated) merge(q stated) {
	s.dir.merge(q.dir)
	s.repo.merge(q.repo)
}

// Place decides. All statements have to agree: who wrote which cannot be known.
// What a prompt quotes from files counts for nothing, and must not be the only
// one. moves says that the client goes from one directory to another, which it
// states in items: the newest counts, and nothing else does.
func (s *Statements) Place(moves bool) (p Place) {
	switch {
	case s.item:
		agreed := moves || s.items.fits(s.newest) && s.prompts.dir.fits(s.newest)
		p = Place{Directory: s.newest, Unclear: s.newest == "" || !agreed}
	case moves:
	default:
		p = Place{Directory: s.prompts.dir.value, Repo: s.prompts.repo.value, Unclear: s.prompts.dir.several || s.prompts.repo.several}
		p.Unclear = p.Unclear || p.Directory == "" && s.quoted.dir.value != ""
	}
	if p.Unclear || !s.parts.fits(p.Directory) {
		return Place{Unclear: true}
	}
	return p
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

// State notes what an item says in which the client says nothing else; an empty
// one says that it cannot be known.
func (s *Statements) State(dir string) {
	s.newest, s.item = dir, true
	s.items.add(dir)
	s.items.several = s.items.several || dir == ""
}

// Doubt notes what may be such an item, or a file that a person attached.
func (s *Statements) Doubt(dir string) { s.parts.add(dir) }

// Size is about how much memory the statements take.
func (s *Statements) Size() (n int) {
	for _, c := range []*claim{&s.prompts.dir, &s.prompts.repo, &s.quoted.dir, &s.quoted.repo, &s.items, &s.parts} {
		n += len(c.value)
	}
	return n + len(s.newest)
}

// marks stand in every statement of a place, however a body spells what
// is around them.
var marks = [][]byte{[]byte("irectory"), []byte("cwd>"), []byte("bsolute path: ")}

// Marked reports whether a place can be stated in a text, as it stands in a JSON
// string: most prompts name none, and are long. escapes says that characters
// may be written as \u0064.
func Marked(raw []byte, escapes bool) bool {
	if escapes && bytes.Contains(raw, []byte(`\u00`)) {
		return true // which may spell a letter
	}
	return marked(raw)
}

func marked(text []byte) bool {
	for _, mark := range marks {
		if bytes.Contains(text, mark) {
			return true
		}
	}
	return false
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
