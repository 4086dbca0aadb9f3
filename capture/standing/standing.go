// Package standing owns the effects of a person's message on the memory. A rule or a text to
// remember becomes a line, a request to forget ends messages and lines, and a directive stores a
// text verbatim.
package standing

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/card"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
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

// Options configures a Keeper.
type Options struct {
	Memory   *graphiti.Memory
	Pipeline *capture.Pipeline
	State    *cache.State
	Config   Config
	Log      *slog.Logger

	// Ended adds the end of statements to the history of their owner, and returns the ID of the
	// change.
	Ended func(ctx context.Context, owner, program string, e Ending) (undo string)
}

// Config may change while the proxy runs.
type Config struct {
	Namer      graphiti.Namer
	Directives bool // apply directives
	Remember   bool // apply requests to remember or forget
}

// Keeper applies persons' messages. It is safe for concurrent use.
type Keeper struct {
	o   Options
	set atomic.Pointer[Config]

	base  context.Context // context of background work
	close context.CancelFunc
	work  sync.WaitGroup // background work for messages
}

// New returns a Keeper.
func New(o Options) *Keeper {
	k := &Keeper{o: o}
	k.base, k.close = context.WithCancel(context.Background())
	k.Set(o.Config)
	return k
}

// Close ends the work for messages.
func (k *Keeper) Close() {
	k.close()
	k.work.Wait()
}

// Set changes the configuration of later calls.
func (k *Keeper) Set(c Config) { k.set.Store(&c) }

func (k *Keeper) namer() graphiti.Namer { return k.set.Load().Namer }
func (k *Keeper) cards() card.Cards     { return card.Cards{Lists: k.o.State.Snapshots} }

// Standing returns a caller's card by importance, from the groups of a question about the person.
func (k *Keeper) Standing(ctx context.Context, w graphiti.Who) ([]graphiti.Fact, error) {
	return k.cards().Facts(ctx, k.o.State.Generations.Recallable(k.namer().Reads(w, true)), w.Place())
}

// Apply applies a person's message to the memory, and counts the effects. A statement takes effect
// at once only in its own place, and only in a typed message of statements alone: other messages
// may contain another author's text. Everything else waits for the person's confirmation. A bot's
// message has no effect.
func (k *Keeper) Apply(ctx context.Context, s Message) (h inject.Heard) {
	if s.Who.SystemActor != "" {
		return h
	}
	set := k.set.Load()
	if set.Directives {
		k.applyDirectives(ctx, &s, &h)
	}
	m := card.Read(s.Text)
	if !m.Alone {
		m = readAround(s.Text)
	}
	if set.Remember {
		h.Refused += m.TooLong
	}
	if len(m.Statements) == 0 {
		return h
	}
	said := message{k: k, Message: s}
	if m.Alone && (s.Typed || s.Amid) && !s.FromFile() {
		said.alone, said.ends = s.Typed, true
	}
	statements := slices.DeleteFunc(m.Statements, func(one card.Statement) bool { return one.Act != card.Rule && !set.Remember })
	if !said.alone {
		statements = statements[:min(len(statements), maxQuoted)]
	}
	h.Forgets = said.ends && slices.ContainsFunc(statements, func(one card.Statement) bool { return one.Act == card.Forget })
	// To forget something, all of a memory is read. Work that takes longer than the request
	// may wait continues without being counted. It ends with Close.
	counted := make(chan inject.Heard, 1)
	k.work.Go(func() {
		ctx, cancel := context.WithTimeout(k.base, applyTimeout)
		defer cancel()
		all := h
		said.applyAll(ctx, statements, &all)
		counted <- all
	})
	select {
	case h = <-counted:
	case <-ctx.Done():
	}
	return h
}

// Forgets reports whether a message only asks to forget something.
func Forgets(text []byte) bool { return len(text) <= MaxMessage && card.Forgets(string(text)) }

// maxQuoted is the most statements that one message of other text adds to the waiting lines.
const maxQuoted = 3

// applyTimeout limits the work for one message, and storeTimeout its wait for the turns before it.
const (
	applyTimeout = time.Minute
	storeTimeout = 10 * time.Second
)

// readAround reads the first and the last paragraph of a text: a person may have pasted or piped a
// file between them. If lines look like those of a file, a paragraph counts only if it consists of
// statements: the file may begin or end the text.
func readAround(text string) (m card.Parsed) {
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n\n")
	if len(all) > 2 {
		all = []string{all[0], all[len(all)-1]}
	}
	isFile := len(all) > 1 && ofFile.MatchString(text)
	for _, paragraph := range all {
		p := card.Read(paragraph)
		if m.TooLong += p.TooLong; p.Alone || !isFile {
			m.Statements = append(m.Statements, p.Statements...)
		}
	}
	return m
}

// ofFile matches a line that looks like a file's: a heading, a fence, a row or a setting.
var ofFile = regexp.MustCompile("(?m)^(?:#{1,6} |```|\\||---|>|\\[[^\\]\n]+\\]$|[\\w.-]+ *= )")
