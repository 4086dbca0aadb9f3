package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"sync"
	"time"
)

const (
	linkFor  = 15 * time.Minute // life of a link, and of the visits that it begins
	maxLinks = 1000
)

// Links are the secrets that let people see their own memory in the pages. They are in RAM
// only. Links is safe for concurrent use. Its zero value is empty and ready to use.
type Links struct {
	mu sync.Mutex // guards by
	by map[[sha256.Size]byte]visitor
}

type visitor struct {
	Caller
	until time.Time
}

// Visitor returns the person of a link that is valid, by the SHA-256 of its secret.
func (l *Links) Visitor(proof [sha256.Size]byte) (Caller, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.by[proof]
	return v.Caller, time.Now().Before(v.until)
}

func (l *Links) add(c Caller) (made Link, err error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.by, func(_ [sha256.Size]byte, v visitor) bool { return !now.Before(v.until) })
	if len(l.by) >= maxLinks {
		return made, errors.New("too many links are valid; try again in a minute")
	}
	if l.by == nil {
		l.by = make(map[[sha256.Size]byte]visitor)
	}
	secret := rand.Text()
	made = Link{Path: "/login?link=" + secret, Until: now.Add(linkFor)}
	l.by[sha256.Sum256([]byte(secret))] = visitor{c, made.Until}
	return made, nil
}

// Link leads to the pages of the admin side.
type Link struct {
	Path  string    `json:"path"`
	Until time.Time `json:"until"`
}

// MakeLink makes a link with which a person sees their own memory in the pages.
var MakeLink = Operation[Selector, Link]{
	Spec: Spec{Name: "memory/link", About: "A link to the pages with which a person sees and changes their own memory for fifteen minutes", People: true,
		Without: []string{"agent", "workspace", "session", "own", "group", "card", "message"}},
	Run: func(ctx context.Context, h *Host, in *Selector) (made Link, err error) {
		if h.Links == nil {
			return made, invalid("a link needs a running proxy: graphiti-proxy serve")
		}
		r, err := h.Memory.belongings(ctx, Selector{User: in.User, Credential: in.Credential})
		if err != nil {
			return made, err
		}
		return h.Links.add(Caller{Name: r.User + r.Credential + ", by a link", Own: Selector{User: r.User, Credential: r.Credential}})
	},
	Audit: func(in *Selector, _ *Link) Entry { return in.audit("link", nil) },
}
