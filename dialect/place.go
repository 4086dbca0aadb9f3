package dialect

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

// placeMarks stand in every statement of a place, however a body spells what
// is around them.
var placeMarks = [][]byte{[]byte("irectory"), []byte("cwd")}

// Place finds out where the client says that it works: only where that client
// itself writes it (placeprompt.go, placeitem.go), never in a person's words, a
// tool's output or a file that the client quotes. codex says that the client is
// Codex. Began and Chain go by what it has found.
func (c *Conversation) Place(codex bool) Place {
	s := prompts.stated(c, &c.prompt)
	if c.opening != nil {
		s.item, s.items = *c.opening, true
	}
	p := s.place(codex)
	c.began, c.moves = p, c.moves[:0]
	asked, answered := false, false
	for i := range c.Messages {
		m := &c.Messages[i]
		if !c.after(c.rawSize(m) + sizeOfMessage) {
			break // who asks sees that reading was stopped
		}
		answered = answered || asked && m.Role == RoleAssistant
		asked = asked || m.Person
		switch {
		case m.System:
			s.merge(prompts.stated(c, m))
		case m.Role == RoleUser && c.marked(m):
			c.item(&s, i, codex)
		default:
			continue
		}
		before := p
		p = s.place(codex)
		c.went(i, before, p, answered, codex)
	}
	return p
}

// prompted is what a system prompt states. It depends on nothing else.
func (c *Conversation) prompted(m *Message) (s statements) {
	if c.marked(m) {
		s.prompt(c.joined(m), c.after)
	}
	return s
}

// statements are those that were found of a place.
type statements struct {
	own    stated // in a prompt, in the form and position that a client writes
	loose  stated // in a prompt, on a line that looks like one
	quoted claim  // on such a line, in what a prompt quotes from files
	item   string // of the newest item in which a client says nothing else
	items  bool   // there was one
	parts  claim  // in what may be such an item, or a file that a person attached
}

// merge adds what another prompt states.
func (s *statements) merge(q statements) {
	s.own.dir.merge(q.own.dir)
	s.own.repo.merge(q.own.repo)
	s.loose.dir.merge(q.loose.dir)
	s.loose.repo.merge(q.loose.repo)
	s.quoted.merge(q.quoted)
}

type stated struct{ dir, repo claim }

// place decides. A client that states its place in items means those. All of
// the others' statements have to agree: who wrote which cannot be told.
func (s *statements) place(codex bool) (p Place) {
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

// marked reports whether a place can stand in a message, before it is decoded:
// most prompts name none, and are long.
func (c *Conversation) marked(m *Message) bool {
	for _, s := range c.spans[m.from:m.to] {
		raw := c.body[s.Start:s.End]
		if s.Unicode && bytes.Contains(raw, []byte(`\u00`)) {
			return true // which may spell a letter
		}
		for _, mark := range placeMarks {
			if bytes.Contains(raw, mark) {
				return true
			}
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

// move is a message that says that the conversation goes on elsewhere.
type move struct {
	message int
	to      Place
}

// went notes what a message says of the place. What is said before the first
// answer is where the conversation began, though it may stand behind the
// person's words; of Codex, which says it before them, the first counts. What
// comes later moves the conversation from there on.
// So what is known of a message depends on nothing but how the conversation
// went up to its answer, and stays when the client goes elsewhere.
func (c *Conversation) went(message int, from, to Place, answered, codex bool) {
	switch {
	case from == to:
	case !answered && (!codex || from == (Place{})):
		c.began = to
	default:
		c.moves = append(c.moves, move{message, to})
	}
}

// Began is where the conversation began, after Place.
func (c *Conversation) Began() Place { return c.began }
