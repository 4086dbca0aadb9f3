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

// Apart is a directory with a project's remote but a separate memory.
type Apart struct {
	Directory string `json:"directory"`
	Workspace string `json:"workspace"` // the project's key
	Remedy    string `json:"to_do"`
}
