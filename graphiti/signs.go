package graphiti

// ClientSigns counts, since the start, signs that a rule for a version of a client is outdated.
type ClientSigns struct {
	Name        string `json:"name"` // the name in package dialect, or an unknown client's name for itself
	Version     string `json:"version,omitempty"`
	NoPlace     int64  `json:"no_place,omitempty"`     // requests that state their place in an unknown form
	NoDirectory int64  `json:"no_directory,omitempty"` // requests with unknown tools but without a directory
	NotHere     int64  `json:"not_here,omitempty"`     // requests from a directory of another machine
	LostAnswers int64  `json:"lost_answers,omitempty"` // answers that were unreadable or not stored, if more than a few
}

// Sign is a consequence of an outdated rule, with its remedy.
type Sign struct{ Says, Remedy string }

// The signs that ClientSigns counts.
var (
	NoPlace = Sign{"no memory, because the project is unknown",
		"name the project in a header X-Graphiti-Workspace, and report the client's version"}
	NoDirectory = Sign{"the memory of the conversation only, because the client offers tools and names no directory",
		"name the project in a header X-Graphiti-Workspace, or set workspace.optional to true"}
	NotHere = Sign{"no memory, because the directory is not on this machine",
		"name the project in a header X-Graphiti-Workspace, or set workspace.remote_paths to true if each path is one project"}
	LostAnswers = Sign{"an answer that was not stored",
		"memory stats and the log have the reasons: for no_end or encoding report the client and the provider"}
)

// Each calls f for each sign with a count.
func (c *ClientSigns) Each(f func(n int64, s Sign)) {
	for i, n := range []int64{c.NoPlace, c.NoDirectory, c.NotHere, c.LostAnswers} {
		if n > 0 {
			f(n, []Sign{NoPlace, NoDirectory, NotHere, LostAnswers}[i])
		}
	}
}

// Apart is a directory with a project's remote but a separate memory.
type Apart struct {
	Directory string `json:"directory"`
	Workspace string `json:"workspace"` // the project's key
	Remedy    string `json:"to_do"`
}
