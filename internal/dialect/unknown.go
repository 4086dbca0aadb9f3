package dialect

import (
	"bytes"
	"slices"
)

// Other is the name of all unknown clients.
const Other = "other"

// Codex is the client that changes its directory within a conversation.
const Codex = "Codex"

// GeminiCLI is Google's client. It has another prompt with each model.
const GeminiCLI = "Gemini CLI"

// Program is a client as identified by a request: a program that people use, or the library
// with which a program sends its requests.
type Program struct {
	Name    string // one of a few
	Places  bool   // it states its working directory in each conversation
	Library bool   // other programs send their requests with it
}

// program is a client with its marks in requests.
type program struct {
	Program `yaml:",inline"`
	Agents  []string // the beginnings of its User-Agent, up to a version
	Prompts []string // the beginnings of its prompt, for the User-Agent of a library
	Title   string   // its X-Title, if it sends the User-Agent of the program that it is a fork of
}

var programs = gather(func(cl *client) []program { return cl.Programs })

// Chats reports whether the client is a known one that people talk with, not the library of an
// unknown program.
func (p Program) Chats() bool { return p.Name != Other && p.Name != "" && !p.Library }

// byAgent holds the programs by the product in their User-Agent.
var byAgent = func() map[string]*program {
	all := make(map[string]*program)
	for i := range programs {
		for _, name := range programs[i].Agents {
			all[name] = &programs[i]
		}
	}
	return all
}()

// ProgramOf returns the client with an X-Title or, without a known title, with a
// User-Agent. sure is false if the User-Agent is unknown or a library's.
func ProgramOf(title, agent []byte) (p Program, sure bool) {
	for i := range programs {
		if len(title) > 0 && programs[i].Title == string(title) {
			return programs[i].Program, true
		}
	}
	name, _, _ := bytes.Cut(agent, []byte{'/'})
	if known := byAgent[string(name)]; known != nil {
		return known.Program, !known.Library
	}
	return Program{Name: Other}, false
}

// Program returns the client that sent the request, judged by its User-Agent or, if that is
// not sure, by the beginning of its prompt.
func (c *Conversation) Program(agent []byte) Program {
	p, sure := ProgramOf(nil, agent)
	if sure {
		return p
	}
	var parts [maxParts][]byte
	for _, begin := range c.prompts(parts[:0]) {
		for i := range programs {
			for _, prompt := range programs[i].Prompts {
				if bytes.HasPrefix(begin, []byte(prompt)) {
					return programs[i].Program
				}
			}
		}
	}
	return p
}

// Named returns the name of the client with this product in its User-Agent, or Other.
func Named(product string) string {
	if p := byAgent[product]; p != nil {
		return p.Name
	}
	return Other
}

// Names returns the names of all clients.
func Names() []string {
	all := []string{Other}
	for i := range programs {
		if !slices.Contains(all, programs[i].Name) {
			all = append(all, programs[i].Name)
		}
	}
	return all
}

// maxTag bounds the name of a tag, in bytes; longer ones do not count.
const maxTag = 64
