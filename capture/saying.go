package capture

import "github.com/graphiti-proxy/graphiti-proxy/graphiti"

// Saying is a person's message that may address the memory, such as "remember that …".
type Saying struct {
	Who        graphiti.Who
	Generation int64  // of the turn's first request
	Turn       string // its ID
	Text       string // the whole message

	// Typed says that the message is alone in its turn, so that the person may have
	// typed all of it.
	Typed bool

	// Opens says that the message opens its conversation, or may do so.
	Opens bool

	// FromFile reports whether the message is the content of a command or skill file of
	// the project. It may read the disk.
	FromFile func() bool
}

// MaxSaying is the longest message, in bytes, that may address the memory: a longer one
// was pasted.
const MaxSaying = 8 << 10
