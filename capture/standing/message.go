package standing

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Message is a person's message that may address the memory, such as "remember that …".
type Message struct {
	Who        graphiti.Who
	Generation int64  // generation of the turn's first request
	Turn       string // its ID
	Text       string // the whole message

	// Typed reports whether the message is the only one in its turn, so that the person may
	// have typed all of it.
	Typed bool

	// Amid reports whether the message came alone behind results of tools, as people type while
	// the model works. It may end a statement, but adds no standing text: some clients put files
	// there.
	Amid bool

	// Template reports whether a program begins its conversations with the message. Its rules wait, even
	// if they applied after the first conversation.
	Template bool

	// Earlier waits until the earlier turns of the conversation are stored, or ctx ends; nil if they are.
	Earlier func(ctx context.Context)

	// FromFile reports whether the message is the content of one of the project's command
	// or skill files. It may read the disk.
	FromFile func() bool
}

// MaxMessage is the size limit, in bytes, of a message that may address the memory: longer
// ones were pasted.
const MaxMessage = 8 << 10
