package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"hash/maphash"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// maxOutlined bounds the messages of all outlines in RAM, at some 40 bytes each.
const maxOutlined = 1 << 20

// outlines holds the outlines of the most recently listed groups. It reads an outline once,
// and later only newer messages. It is safe for concurrent use.
type outlines struct {
	seed maphash.Seed

	mu   sync.Mutex // guards the fields below
	lru  *simplelru.LRU[string, *outline]
	size int // messages
}

// outline has the messages of a group without their texts.
type outline struct {
	mu       sync.Mutex // guards the fields up to numbers; held while the file is read
	messages []outlined // is only appended to
	talks    []string   // likewise; the first one is no conversation
	numbers  map[string]uint32

	size int // its part of outlines.size; guarded by outlines.mu
}

// outlined is a message in an outline.
type outlined struct {
	key   uint64 // hash of its turn, or of its name if it belongs to no turn
	said  int64  // Unix milliseconds
	place uint32
	talk  uint32
	role  uint8 // index in roles
	turn  bool  // it belongs to a turn
}

var roles = [...]graphiti.RoleType{graphiti.RoleUser, graphiti.RoleAssistant, graphiti.RoleSystem}

func newOutlines() *outlines {
	o := &outlines{seed: maphash.MakeSeed()}
	o.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ string, g *outline) { o.size -= g.size }) // fails for no size only
	return o
}

// of returns the outline of a group, which may still be empty.
func (o *outlines) of(group string) *outline {
	o.mu.Lock()
	defer o.mu.Unlock()
	g, ok := o.lru.Get(group)
	if !ok {
		g = &outline{talks: []string{""}, numbers: map[string]uint32{"": 0}}
		o.lru.Add(group, g)
	}
	return g
}

// weigh updates the size of an outline, and drops the oldest outlines if there are too many
// messages.
func (o *outlines) weigh(group string, g *outline, size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, ok := o.lru.Peek(group); !ok || now != g {
		return
	}
	o.size += size - g.size
	g.size = size
	for o.size > maxOutlined && o.lru.Len() > 0 {
		o.lru.RemoveOldest()
	}
}

// deleted drops the outline of a group after some of its messages were deleted.
func (o *outlines) deleted(group string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lru.Remove(group)
}

// behind selects the messages of a group after a place, without their texts.
const behind = "SELECT id & 4294967295, name, role, source, said FROM messages WHERE id > ? AND id <= ? ORDER BY id"

// outline returns the messages of a group, and the conversations that they name. Callers
// must not change the results.
func (e *Store) outline(ctx context.Context, group string) (messages []outlined, talks []string, err error) {
	g := e.outlines.of(group)
	g.mu.Lock()
	defer g.mu.Unlock()
	number, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return nil, nil, err
	}
	first := number << placeBits
	after := first
	if n := len(g.messages); n > 0 {
		after |= int64(g.messages[n-1].place)
	}
	var place, said int64
	var name, role, source sql.RawBytes
	err = e.db.Each(ctx, behind, []any{after, first | maxPlace}, func(scan func(...any) error) error {
		if err := scan(&place, &name, &role, &source, &said); err != nil {
			return err
		}
		g.add(e.outlines.seed, place, string(name), graphiti.RoleType(role), string(source), said)
		return nil
	})
	e.outlines.weigh(group, g, len(g.messages))
	return g.messages, g.talks, err
}

func (g *outline) add(seed maphash.Seed, place int64, name string, role graphiti.RoleType, source string, said int64) {
	m := outlined{said: said, place: uint32(place)} //nolint:gosec // a place has 32 bits
	for i, r := range roles {
		if r == role {
			m.role = uint8(i) //nolint:gosec // there are three
		}
	}
	talk := ledger.SessionOf(source)
	number, known := g.numbers[talk]
	if !known {
		number = uint32(len(g.talks)) //nolint:gosec // no more than places
		g.numbers[talk], g.talks = number, append(g.talks, talk)
	}
	m.talk = number
	var turn string
	if turn, m.turn = graphiti.TurnOf(name); m.turn && graphiti.EpisodeName(turn, role) == name {
		m.key = maphash.String(seed, turn)
	} else {
		m.turn, m.key = false, maphash.String(seed, name)
	}
	g.messages = append(g.messages, m)
}

// Outline implements graphiti.Outliner.
func (e *Store) Outline(ctx context.Context, group string, f func(*graphiti.Heading)) error {
	messages, talks, err := e.outline(ctx, group)
	if err != nil {
		return fmt.Errorf("outline group: %w", err)
	}
	var h graphiti.Heading
	for i := range messages {
		m := &messages[i]
		h = graphiti.Heading{Place: int64(m.place), Name: m.key, Talk: talks[m.talk], Role: roles[m.role], Said: time.UnixMilli(m.said)}
		if m.turn {
			h.Turn = m.key
			h.Name += uint64(m.role) + 1
		}
		f(&h)
	}
	return nil
}

// EpisodesAt implements graphiti.Outliner.
func (e *Store) EpisodesAt(ctx context.Context, group string, places []int64) (out []graphiti.Episode, err error) {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok || len(places) == 0 {
		return nil, err
	}
	ids := []byte{'['}
	for i, place := range places {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = strconv.AppendInt(ids, g<<placeBits|place, 10)
	}
	err = e.episodes(ctx, group, `SELECT m.id, m.name, m.speaker, m.role, m.content, m.source, m.kept, m.said
		FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value ORDER BY m.id`, []any{string(append(ids, ']'))},
		func(ep graphiti.Episode) error { out = append(out, ep); return nil })
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return out, nil
}

// Latest implements graphiti.Outliner.
func (e *Store) Latest(ctx context.Context, f func(group string, said time.Time)) error {
	err := e.db.Each(ctx, "SELECT g.name, m.said FROM groups g JOIN messages m ON m.id = "+lastOf, nil, func(scan func(...any) error) error {
		var name string
		var said int64
		if err := scan(&name, &said); err != nil {
			return err
		}
		f(name, time.UnixMilli(said))
		return nil
	})
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	return nil
}
