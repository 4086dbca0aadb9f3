package service

import (
	"crypto/sha256"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinks checks that a link is valid for fifteen minutes, and that there are not too many.
func TestLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Links
		made, err := l.add(Caller{Name: "mira"})
		if err != nil {
			t.Fatal(err)
		}
		proof := sha256.Sum256([]byte(strings.TrimPrefix(made.Path, "/login?link=")))
		if c, ok := l.Visitor(proof); !ok || c.Name != "mira" {
			t.Errorf("got %v, %v", c, ok)
		}
		if c, ok := l.Visitor(sha256.Sum256(nil)); ok {
			t.Errorf("another secret is of %v", c)
		}
		for err == nil {
			_, err = l.add(Caller{})
		}
		if len(l.by) != maxLinks {
			t.Errorf("%d links", len(l.by))
		}
		time.Sleep(linkFor)
		if _, ok := l.Visitor(proof); ok {
			t.Error("the link is still valid")
		}
		if _, err := l.add(Caller{}); err != nil || len(l.by) != 1 {
			t.Errorf("%d links, %v", len(l.by), err)
		}
	})
}
