package dialect

import (
	"embed"
	"strings"

	"go.yaml.in/yaml/v3"
)

// records has one file a client.
//
//go:embed clients
var records embed.FS

// EachClient calls each for every known client, by the name of its file. decode reads the sections
// of the file that into has.
func EachClient(each func(file string, decode func(into any))) {
	files, _ := records.ReadDir("clients") // a folder of the program
	for _, f := range files {
		text, _ := records.ReadFile("clients/" + f.Name())
		each(strings.TrimSuffix(f.Name(), ".yaml"), func(into any) {
			if err := yaml.Unmarshal(text, into); err != nil {
				panic(err)
			}
		})
	}
}

// client describes one client: its own requests, and its additions to a person's messages.
type client struct {
	Name string

	Programs []program // the names by which requests identify it
	Chores   []chore

	// Content of other authors, in a message of the user's role.
	Tags   []string    // elements
	Texts  []textMark  // whole texts, each a part of a message or all of it
	From   []preface   // texts before the person's words
	Tails  []string    // begin paragraphs that continue to the end
	Within []string    // elements: if one is present, only its content is the person's
	Around []string    // elements that hold only the person's words
	Files  [][2]string // lines that begin and end an attached file

	Items   []item   // its statements of the directory
	Prompts []string // begin the lines after which its prompt quotes files

	// Interrupted holds the beginnings of texts which report that the person has
	// interrupted the model.
	Interrupted []string

	Tools []string // tools of a chat server that touch its own data only

	Quotes []string // in its prompt: it puts the words of its command line into quotation marks

	// Answers holds the beginnings of the client's own answers to a summary that it put
	// into a message.
	Answers []string
}

// textMark recognises a text of a client.
type textMark struct {
	Start string // its beginning
	Then  string // anywhere after start
	Whole bool   // Start is the whole text
	Opens string // it opens a conversation, and the system prompt holds this text

	Summary bool // it replaces earlier messages
}

// preface is a client's text before a person's words: it begins with start, and ends
// with the last line that equals end.
type preface struct {
	Start, End string
	Behind     bool // the line need only end with end
}

// chore recognises one kind of a client's own requests by its distinctive texts. The texts
// are anchored: system at the start of a system prompt's part, user at the start of a part
// of the newest user message, so that a person's quotation of one of them does not silence
// the person.
type chore struct {
	client string // filled in
	Kind   Kind
	System string
	Inside string // anywhere near the start of the system prompt
	User   string
	Then   string   // soon after user
	Holds  []string // begin lines after user, in this order
	Whole  bool     // user is the whole message
	Bare   bool     // others use the text too: it is a chore only if the request offers no tools
	Agent  bool     // it is no chore: a subagent speaks, at the request of a model

	within, after []byte // inside and then, filled in
}

// clients are the known clients. Every request of a client that sends none of these texts
// is a turn.
var clients = func() (all []client) {
	EachClient(func(_ string, decode func(into any)) {
		var c client
		decode(&c)
		all = append(all, c)
	})
	return all
}()
