package embedded

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// maxOutlined bounds the messages of all outlines in RAM, at some 60 bytes each.
const maxOutlined = 1 << 20

// outlines holds the outlines of the most recently listed groups. It reads an outline once,
// and later only newer messages.
type outlines struct{ *memo.LRU[string, *outline] }

// outline has the messages of a group without their texts.
type outline struct {
	mu       sync.Mutex // guards the fields below; held while the file is read
	messages []outlined // is only appended to
	talks    []string   // likewise; the first one is no conversation
	numbers  map[string]uint32
	clients  []string // likewise; few, so a search in it is fast
}

// outlined is a message in an outline.
type outlined struct {
	said  int64 // Unix milliseconds
	place uint32
	talk  uint32 // index in talks
	turn  graphiti.TurnID
	id    graphiti.ID
	role  uint8 // index in roles

	client uint16 // index in clients; other numbers are unknown clients
}

var roles = [...]graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant, graphiti.RoleSystem}

// of returns the outline of a group, which may still be empty.
func (o outlines) of(group string) (g *outline) {
	o.Update(group, func(was *outline, has bool) (*outline, int) {
		if g = was; has {
			return was, -1
		}
		g = &outline{talks: []string{""}, numbers: map[string]uint32{"": 0}}
		return g, 1
	})
	return g
}

// weigh updates the size of an outline, unless it was dropped.
func (o outlines) weigh(group string, g *outline) {
	o.Update(group, func(now *outline, _ bool) (*outline, int) {
		if now != g {
			return now, -1
		}
		return g, 1 + len(g.messages)
	})
}

// maxClients bounds the clients of an outline. A filter reads the messages of all others.
const maxClients = 64

// newer selects the messages of a group after a place, without their texts.
const newer = "SELECT id & 4294967295, name, role, source, said FROM messages WHERE id > ? AND id <= ? ORDER BY id"

// outline returns the messages of a group, and the conversations and clients that they name. Callers
// must not change the results.
func (e *Store) outline(ctx context.Context, group string) (messages []outlined, talks, clients []string, err error) {
	if err := e.look(ctx, group); err != nil {
		return nil, nil, nil, err
	}
	g := e.outlines.of(group)
	g.mu.Lock()
	defer g.mu.Unlock()
	number, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return nil, nil, nil, err
	}
	first := number << placeBits
	after := first
	if n := len(g.messages); n > 0 {
		after |= int64(g.messages[n-1].place)
	}
	var place, said int64
	var name, role, source sql.RawBytes
	err = e.db.Each(ctx, newer, []any{after, first | maxPlace}, func(scan func(...any) error) error {
		if err := scan(&place, &name, &role, &source, &said); err != nil {
			return err
		}
		r := graphiti.Row{Name: string(name), Role: graphiti.RoleType(role), Source: string(source), Said: time.UnixMilli(said)}
		g.add(&r, place)
		return nil
	})
	e.outlines.weigh(group, g)
	return g.messages, g.talks, g.clients, err
}

func (g *outline) add(r *graphiti.Row, place int64) {
	r.Identify()
	m := outlined{said: r.Said.UnixMilli(), place: uint32(place), turn: r.Turn, id: r.ID} //nolint:gosec // a place has 32 bits
	for i, role := range roles {
		if role == r.Role {
			m.role = uint8(i) //nolint:gosec // there are three
		}
	}
	number, known := g.numbers[r.Session]
	if !known {
		number = uint32(len(g.talks)) //nolint:gosec // no more than places
		g.numbers[r.Session], g.talks = number, append(g.talks, r.Session)
	}
	m.talk = number
	client := gjson.Get(r.Source, "client").Str
	at := slices.Index(g.clients, client)
	if at < 0 && len(g.clients) < maxClients {
		at, g.clients = len(g.clients), append(g.clients, client)
	}
	if m.client = math.MaxUint16; at >= 0 {
		m.client = uint16(at) //nolint:gosec // see maxClients
	}
	g.messages = append(g.messages, m)
}
