// Package person owns how people speak of themselves, and which rules they lay down:
// what may be either is worth noting when it is said, and is one once it was said
// again. It knows marks of rules in fifteen languages, and nothing of what they are
// about.
//
// It must not know where anything is kept. Of our packages it may import
// graphiti/words and internal/fence.
package person

import "github.com/graphiti-proxy/graphiti-proxy/graphiti/words"

// maxAsked is how much of a question is looked at, in bytes.
const maxAsked = 2048

// Asks reports whether a question is about the one who asks it: then what is known
// of the person matters beside what is known of the project.
func Asks(text []byte) bool {
	asked := string(text[:min(len(text), maxAsked)])
	return words.Personal(asked) && words.Asks(asked)
}
