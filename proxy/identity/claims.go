package identity

import (
	"bytes"
	"regexp"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// Claims holds the unverified statements of a request about its sender, from its headers,
// URL, body and prompt.
type Claims struct {
	h       *fasthttp.RequestHeader
	conv    *dialect.Conversation // nil if the body was not read
	values  [maxHeaders][]byte
	several [maxHeaders]bool // the header has two different values
	generic []byte           // the value of a header that matches sessionHeader
	named   []byte           // name of that header
	mixed   bool             // that header has two different values

	token  *gjson.Result // verified claims in Open WebUI's token, or nil
	forged bool          // the token is invalid

	headersOnly bool        // only a header may name a person
	unclear     [kinds]bool // the source in use has two different values

	program dialect.Program
	sure    bool  // the header alone identifies the program
	at      Place // where the client works
	located bool  // at is set
}

// sessionHeader matches session headers of gateways and clients.
var sessionHeader = regexp.MustCompile(`^X-.+-(Session|Conversation|Thread|Chat)-Id$`)

const minGeneric = 8 // least characters of a value that matches sessionHeader

// ReadHead reads the claims in a request header into cl, which may be reused, and returns
// cl. It reads the headers once.
func (cl *Claims) ReadHead(h *fasthttp.RequestHeader) *Claims {
	*cl = Claims{h: h}
	agent := h.UserAgent()
	codex, title := bytes.HasPrefix(agent, []byte("codex")), []byte(nil)
	for name, value := range h.All() {
		if len(value) == 0 {
			continue
		}
		if id, ok := headerIDs[string(name)]; ok {
			if cl.values[id] == nil {
				cl.values[id] = value
			}
			cl.several[id] = cl.several[id] || !bytes.Equal(cl.values[id], value)
			continue
		}
		if len(name) < 2 || name[0] != 'X' && name[0] != 'O' {
			continue
		}
		switch {
		case bytes.HasPrefix(name, []byte("X-Codex-")), string(name) == "Originator" && bytes.HasPrefix(value, []byte("codex")):
			codex = true
		case string(name) == "X-Title":
			title = value
		case cl.generic != nil && bytes.Equal(name, cl.named):
			cl.mixed = cl.mixed || !bytes.Equal(cl.generic, value)
		case bytes.HasSuffix(name, []byte("-Id")) && len(value) >= minGeneric && cl.generic == nil && sessionHeader.Match(name):
			cl.generic, cl.named = value, name
		}
	}
	if cl.program, cl.sure = dialect.ProgramOf(title, agent); codex {
		cl.program, cl.sure = dialect.Program{Name: dialect.Codex, Places: true}, true
	}
	return cl
}

// ReadBody adds the claims of the body and its prompt.
func (cl *Claims) ReadBody(conv *dialect.Conversation) {
	if cl.conv = conv; !cl.sure {
		cl.program = conv.Program(cl.h.UserAgent())
	}
}

// verify reads Open WebUI's token and checks its signature.
func (cl *Claims) verify(secret string) {
	if signed := cl.values[headerIDs[openWebUIUser]]; signed != nil {
		claims, ok := openWebUIToken(string(signed), secret, time.Now())
		if cl.forged = !ok || cl.several[headerIDs[openWebUIUser]]; !cl.forged {
			cl.token = &claims
		}
	}
}

// Program returns the likely client program.
func (cl *Claims) Program() dialect.Program { return cl.program }

// Codex reports whether the client is OpenAI's Codex.
func (cl *Claims) Codex() bool { return cl.program.Name == dialect.Codex }

// applies reports whether a source counts for this client.
func (cl *Claims) applies(s *Source) bool {
	return (s.when == nil || s.when(cl)) && (s.of == nil || slices.Contains(s.of, cl.program.Name))
}

// copilot reports whether the client is Copilot. Its tool rounds have only X-Initiator.
func (cl *Claims) copilot() bool {
	return len(cl.h.Peek("X-Interaction-Type")) > 0 || len(cl.h.Peek("X-Initiator")) > 0
}

func (cl *Claims) notGoose() bool { return !bytes.Contains(cl.h.UserAgent(), []byte("oose")) }

// twice reports whether a source has two different values.
func (cl *Claims) twice(s *Source) bool {
	switch {
	case !cl.applies(s):
		return false
	case s.header != "":
		return cl.several[s.id]
	case s.pattern:
		return cl.mixed
	case s.query != "":
		all := queryValues(cl.h.RequestURI(), s.query)
		return slices.ContainsFunc(all, func(v []byte) bool { return !bytes.Equal(v, all[0]) })
	}
	return false
}

// contradicts reports whether a source in use has two different values. If the registry
// proves the person, the sources of a person do not count.
func (cl *Claims) contradicts(registered bool) bool {
	for kind, unclear := range cl.unclear {
		if unclear && (kind != User || !registered) {
			return true
		}
	}
	return false
}

// value returns the value of a source, or "".
func (cl *Claims) value(s *Source) (v string) {
	if !cl.applies(s) {
		return ""
	}
	switch {
	case s.token != "":
		if cl.token != nil {
			v = cl.token.Get(s.token).String()
		}
	case s.header != "":
		v = string(cl.values[s.id])
	case s.pattern:
		v = string(cl.generic)
	case s.query != "":
		if all := queryValues(cl.h.RequestURI(), s.query); len(all) > 0 {
			v = string(all[0])
		}
	case s.prompt != "":
		if cl.conv != nil {
			v = cl.conv.Prompted(s.prompt)
		}
	case s.place != nil:
		if cl.located {
			v = s.place(cl)
		}
	case cl.conv != nil:
		v = fieldValue(cl.conv.Field(s.field), s.path)
	}
	if v != "" && s.take != nil {
		v = s.take(v)
	}
	return v
}

// fieldValue returns the string in a field or in an object's member, or "" for any other
// type.
func fieldValue(raw []byte, path string) string {
	if len(raw) == 0 {
		return ""
	}
	r := gjson.ParseBytes(raw)
	if path != "" {
		r = r.Get(path)
	}
	if r.Type != gjson.String {
		return ""
	}
	return r.Str
}

// queryValues returns the values of a query parameter of a URI.
func queryValues(uri []byte, name string) [][]byte {
	_, query, ok := bytes.Cut(uri, []byte{'?'})
	if !ok {
		return nil
	}
	var args fasthttp.Args
	args.ParseBytes(query)
	return args.PeekMulti(name)
}

// claim returns the key of the first source of a kind with a valid value, and the source's
// name. If that source has two different values or an invalid signature, claim returns no
// key and sets unclear.
func (cl *Claims) claim(kind int) (key, why string) {
	t := &tables[kind]
	for i := range t.Sources {
		s := &t.Sources[i]
		if kind == User && cl.headersOnly && s.header == "" {
			continue
		}
		if s.token != "" && cl.forged {
			cl.unclear[kind] = true
			return "", s.Name
		}
		v := cl.value(s)
		if v == "" || s.elsewhere && cl.at.Repo.Dir != "" {
			continue
		}
		if cl.twice(s) {
			cl.unclear[kind] = true
			return "", s.Name
		}
		if s.Platform != "" {
			v = "user:" + s.Platform + ":" + v
		}
		if key, ok := t.key(v); ok {
			return key, s.Name
		}
	}
	return "", ""
}

// Child returns the session of a subagent whose client names its parent's too, or "".
func (cl *Claims) Child() string {
	parent, ok := graphiti.SessionKey(noTitle(string(cl.values[headerIDs[parentSession]])))
	if !ok {
		return ""
	}
	if all := cl.all(Session); all[0] == parent {
		for _, key := range all {
			if key != parent {
				return key
			}
		}
	}
	return ""
}

// registered returns the registered person of a caller, or nil. It tries the source of the
// user, then the next sources that name the same person in another way, such as by e-mail
// address.
func (cl *Claims) registered(people *Registry, c *Caller) *Person {
	person := people.Registered(c.Who.User)
	if person != nil || people == nil || c.Who.User == "" {
		return person
	}
	list := tables[User].Sources
	at := slices.IndexFunc(list, func(s Source) bool { return s.Name == c.Why[User] })
	for _, s := range list[at+1:] {
		if !s.same {
			break
		}
		if cl.twice(&s) {
			cl.unclear[User] = true
			return nil
		}
		if person = people.Registered("user:" + s.Platform + ":" + cl.value(&s)); person != nil {
			return person
		}
	}
	return nil
}

// all returns the valid keys of all sources of a kind.
func (cl *Claims) all(kind int) (keys []string) {
	t := &tables[kind]
	for i := range t.Sources {
		if key, ok := t.key(cl.value(&t.Sources[i])); ok {
			keys = append(keys, key)
		}
	}
	return keys
}
