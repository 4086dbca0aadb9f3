package observe

import (
	"bytes"
	"cmp"
	"log/slog"
	"slices"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// maxSeen is the maximum number of client versions that are counted.
	maxSeen = 128

	// maxName is the maximum length of a client's name for itself, and of its version.
	maxName = 32
)

// clients counts, for all versions of clients, the signs that a rule no longer matches. It is safe
// for concurrent use.
type clients struct {
	mu   sync.Mutex // guards seen
	seen map[version]*graphiti.ClientSigns
}

// version is a version of a client.
type version struct{ name, number string }

// client is a client's name and version, see named.
type client struct {
	name, version string
	shown         string // the name, unless it may be a key
}

// named returns a client's name and version for display. An unknown client has its own
// name for itself. The version is empty if it would be a library's.
func named(p dialect.Program, agent []byte) client {
	product, rest, _ := bytes.Cut(agent, []byte{'/'})
	version, _, _ := bytes.Cut(rest, []byte{' '})
	of := client{name: p.Name}
	if dialect.Named(string(product)) == p.Name && plain(version) {
		of.version = string(version)
	}
	if p.Name == dialect.Other && len(product) > 0 && plain(product) {
		of.name = string(product)
	}
	if of.shown = of.name; likeKey(of.name) {
		of.shown = hidden
	}
	return of
}

// of returns the counts of a version of a client; beyond maxSeen, the shared counts of
// all further clients. The caller holds mu.
func (c *clients) of(v version) *graphiti.ClientSigns {
	if c.seen[v] == nil && len(c.seen) >= maxSeen {
		v = version{dialect.Other, ""}
	}
	if c.seen[v] == nil {
		if c.seen == nil {
			c.seen = make(map[version]*graphiti.ClientSigns)
		}
		c.seen[v] = &graphiti.ClientSigns{Name: v.name, Version: v.number}
	}
	return c.seen[v]
}

// plain reports whether a word can be displayed, and is too short to be a secret.
func plain(word []byte) bool {
	return len(word) <= maxName && !bytes.ContainsFunc(word, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '-' && r != '_' && r != '+'
	})
}

// Missing is the cause of an unknown place.
type Missing uint8

// Causes of an unknown place.
const (
	MissingForm      Missing = iota // no rule matches the client's statement of its directory
	MissingDirectory                // the tools are unknown, and the client states no directory
	MissingHere                     // the directory is not on this machine
)

var missing = [...]graphiti.Sign{MissingForm: graphiti.NoPlace, MissingDirectory: graphiti.NoDirectory, MissingHere: graphiti.NotHere}

// Remedy returns the remedy for the cause.
func (m Missing) Remedy() string { return missing[m].Remedy }

// WithoutPlace counts a turn without a place, and logs the client's first one. agent is the
// User-Agent.
func (o *Observer) WithoutPlace(p dialect.Program, agent []byte, why Missing) {
	client := named(p, agent)
	o.clients.mu.Lock()
	defer o.clients.mu.Unlock()
	one := o.clients.of(version{client.name, client.version})
	n := [...]*int64{&one.NoPlace, &one.NoDirectory, &one.NotHere}[why]
	if *n++; *n == 1 {
		o.log.Warn(missing[why].Says, slog.String("client", one.Name), slog.String("version", one.Version), slog.String("remedy", why.Remedy())) //nolint:sloglint // one of three constants
	}
	o.signs.add(p.Name)
}

// Clients returns the clients for which a rule may no longer match, by name and
// version.
func (o *Observer) Clients() (all []graphiti.ClientSigns) {
	o.clients.mu.Lock()
	defer o.clients.mu.Unlock()
	for _, one := range o.clients.seen {
		c := *one
		if c.LostAnswers <= fewLost {
			c.LostAnswers = 0
		}
		if c.NoPlace+c.NoDirectory+c.NotHere+c.LostAnswers > 0 {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b graphiti.ClientSigns) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return all
}
