package main

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// withheld starts a proxy with a Graphiti that processes a message with one of the words
// only after a call of work with that word.
func withheld(t *testing.T, backend string, o graphititest.Options, words ...string) (w *world, g *graphititest.Graphiti, work func(word string)) {
	t.Helper()
	gates := make(map[string]chan struct{})
	for _, word := range words {
		gates[word] = make(chan struct{})
	}
	o.Raises = func(_, content string) bool {
		for word, gate := range gates {
			if strings.Contains(content, word) {
				<-gate
			}
		}
		return false
	}
	g = startGraphiti(t, o)
	opened := make(map[string]bool)
	work = func(word string) {
		if !opened[word] {
			opened[word] = true
			close(gates[word])
		}
	}
	t.Cleanup(func() {
		for _, word := range words {
			work(word)
		}
	})
	return start(t, t.TempDir(), map[string]string{
		"memory.backend": backend, "memory.endpoint": g.URL(), "memory.consent": "true", "identity.owner": "user:josh", "identity.group_ids": "raw",
	}), g, work
}

// recalledOnce waits until a word is recalled, and fails if it is recalled twice.
func (w *world) recalledOnce(asked, word string) {
	w.t.Helper()
	waitUntil(w.t, word+" is recalled", func() bool {
		_, header, saw := w.say(asked, "X-Graphiti-Memory", "recall")
		n := strings.Count(saw, word)
		if n > 1 {
			w.t.Fatalf("%s is recalled %d times (%s): %s", word, n, header, saw)
		}
		return n == 1
	})
}
