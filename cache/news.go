package cache

import (
	"encoding/hex"
	"strings"
)

// News is where replicas tell each other what they keep and drop, so that each
// of them goes on repeating blocks while Redis is down. A piece of news begins
// with its kind.
const News = "news"

const (
	newsOfBlock = "block " // its key in hex, and the block as it is kept
	newsOfLink  = "link "  // its fingerprint in hex, and the session
	newsOfDrop  = "drop "  // a group of which what was found is to be dropped

	// NewsOfForget begins what is told of a group of which something was
	// forgotten. More may stand in lines behind its name.
	NewsOfForget = "forget "
)

// Heard takes over what another replica keeps.
func (s *State) Heard(news string) {
	if key, rest, ok := keyed(news, newsOfBlock); ok {
		if b, err := s.store.(*replicas).parseBlock(rest); err == nil { //nolint:forcetypeassert // only replicas tell
			s.Blocks.recent.put(key, b, costOfBlock(b))
		}
	}
	if key, rest, ok := keyed(news, newsOfLink); ok {
		s.Chain.recent.put(key, link{session: rest}, costOfLink)
	}
}

// keyed takes news of a kind apart.
func keyed(news, kind string) (key [16]byte, rest string, ok bool) {
	n := len(kind) + hex.EncodedLen(len(key))
	if len(news) < n || news[:len(kind)] != kind {
		return key, "", false
	}
	_, err := hex.Decode(key[:], []byte(news[len(kind):n]))
	return key, news[n:], err == nil
}

// Heard drops what was found in a group that holds something new, or that was
// emptied.
func (r *Recall[V]) Heard(news string) {
	for _, kind := range []string{newsOfDrop, NewsOfForget} {
		if len(news) > len(kind) && news[:len(kind)] == kind {
			group, _, _ := strings.Cut(news[len(kind):], "\n")
			r.generation(group).Add(1)
		}
	}
}
