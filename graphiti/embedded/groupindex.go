package embedded

import (
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// indexedMessage is a message as input of the index.
type indexedMessage struct {
	Place   int64 // in its group: larger than that of each earlier message
	Speaker string
	Text    string
	Note    messageNote // without the fields that the index sets
	Asks    bool        // it only asks: its words do not become more common
	claim   *claim      // nil for messages
	Keys    []string    // of a fact
}

const (
	maxWords    = 4000 // words of one message that are indexed
	maxNames    = 16   // words of a speaker's name
	maxSpeakers = 5000 // speakers of a group whose names count in a question
)

// Sizes of parts of an index, in bytes, found by measuring heaps.
const (
	groupBytes   = 1000
	wordBytes    = 148 // and the word itself, twice
	speakerBytes = 128
	noteBytes    = int(unsafe.Sizeof(messageNote{}))
)

// groupIndex is the index of one group. It is safe for concurrent use.
type groupIndex struct {
	mu       sync.RWMutex // guards the fields below
	number   int64
	lists    map[string]*list    // by word
	begins   btree.Set[string]   // the words
	ends     btree.Set[string]   // the words, spelt backwards
	notes    []messageNote       // of its messages, by their places
	forms    []sketch            // for each note, of the message's words
	speakers map[string]uint16   // their numbers, from 1 on
	claims   map[int64]*claim    // facts, by their places
	evidence map[int64][]int64   // places of facts, by those of their messages
	called   map[string][]string // speakers, by the words of their names
	size     int
	oldest   int64 // earlier places are not in the lists
	newest   int64
	bytes    int

	compacted int64 // newest at the last call of compact
}

func newGroup() *groupIndex {
	return &groupIndex{
		lists: make(map[string]*list), speakers: make(map[string]uint16), called: make(map[string][]string),
		claims: make(map[int64]*claim), evidence: make(map[int64][]int64), bytes: groupBytes,
	}
}

// groupNumber returns the number of the group in the file; 0 if it has no messages.
func (g *groupIndex) groupNumber() int64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.number
}

// messageCount returns the number of the group's messages.
func (g *groupIndex) messageCount() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.size
}

// find returns the number of messages with a word, not counting messages that only ask, and
// the places of the newest most messages with the word, in ascending order.
func (g *groupIndex) find(word string, most int) (places []int64, messages int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	l := g.lists[word]
	if l == nil {
		return nil, 0
	}
	return l.newest(most), l.n - l.asked
}

// speakersNamed returns the speakers with one of these words in their names, sorted; known
// are the words that are part of any speaker's name.
func (g *groupIndex) speakersNamed(words []string) (named, known []string) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, w := range words {
		if names := g.called[w]; len(names) > 0 {
			named, known = append(named, names...), append(known, w)
		}
	}
	slices.Sort(named)
	return slices.Compact(named), known
}

// add adds messages, in the order of their places. It skips messages that were added
// before.
func (g *groupIndex) add(number int64, messages []indexedMessage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.number = number
	for i := range messages {
		m := &messages[i]
		if m.Place <= g.newest {
			continue
		}
		g.newest = m.Place
		g.size++
		g.speak(m.Speaker)
		note := m.Note
		left := maxWords
		var first sketcher
		words.Each(m.Text, func(w []byte, k words.Significance) bool {
			note.form.say(w)
			if k == words.Function {
				return true
			}
			first.add(w)
			if g.addWord(w, m.Place, m.Asks) {
				left--
			}
			eachPiece(w, func(p []byte) { g.addWord(p, m.Place, m.Asks) })
			return left > 0
		})
		for _, k := range m.Keys {
			g.addWord([]byte(keyTerm(k)), m.Place, false)
		}
		if !m.Asks && note.form.numbers && g.copied(&note) {
			g.discount(m.Text, m.Place)
		}
		note.place, note.speaker = uint32(m.Place), g.speakers[m.Speaker] //nolint:gosec // a place has 32 bits
		note.sketch, note.words = first.sum, uint8(first.words)           //nolint:gosec // Sketched bounds it
		g.bytes -= g.noted()
		g.notes, g.forms = append(g.notes, note), append(g.forms, note.form.sketch)
		if m.claim != nil {
			g.claimLocked(m.Place, m.claim)
		}
		g.bytes += g.noted()
	}
}

// discount makes the words of the message at a place no more common: it has the form of an older one.
func (g *groupIndex) discount(text string, place int64) {
	seen := make(map[string]bool)
	each := func(w []byte) {
		if l := g.lists[string(w)]; l != nil && l.last == place && !seen[string(w)] {
			seen[string(w)] = true
			l.asked++
		}
	}
	words.Each(text, func(w []byte, k words.Significance) bool {
		if k != words.Function {
			each(w)
			eachPiece(w, each)
		}
		return true
	})
}

// noted returns the size of the notes, in bytes.
func (g *groupIndex) noted() int { return cap(g.notes)*noteBytes + 8*cap(g.forms) }

// addWord adds a place of a word, and reports whether it is new.
func (g *groupIndex) addWord(w []byte, place int64, asks bool) bool {
	l := g.lists[string(w)]
	if l == nil {
		l = &list{}
		word := string(w)
		g.lists[word] = l
		if word[0] != pieceMark[0] {
			g.begins.Insert(word)
			g.ends.Insert(backwards(word))
		}
		g.bytes += wordBytes + 2*len(word)
	}
	g.bytes -= cap(l.deltas)
	added := l.add(place)
	if added && asks {
		l.asked++
	}
	g.bytes += cap(l.deltas)
	return added
}

// speak adds the name of a speaker.
func (g *groupIndex) speak(name string) {
	if name == "" || g.speakers[name] != 0 || len(g.speakers) == maxSpeakers {
		return
	}
	g.speakers[name] = uint16(len(g.speakers) + 1) //nolint:gosec // maxSpeakers bounds it
	for _, w := range words.Of(name, maxNames) {
		g.called[w] = append(g.called[w], name)
	}
	g.bytes += speakerBytes + 2*len(name)
}

// compact moves the words and their places into a few large pieces of memory, without spare
// capacity. They were allocated one by one among short-lived objects, so each keeps a span of
// the heap in use.
func (g *groupIndex) compact() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.compacted == g.newest {
		return
	}
	g.compacted = g.newest
	letters, size := 0, 0
	for w, l := range g.lists {
		letters += len(w)
		size += len(l.deltas)
	}
	var text strings.Builder
	text.Grow(2 * letters)
	hold := func(s string) string {
		text.WriteString(s)
		return text.String()[text.Len()-len(s):]
	}
	moved, deltas := make([]list, 0, len(g.lists)), make([]byte, 0, size)
	lists := make(map[string]*list, len(g.lists))
	g.begins, g.ends = btree.Set[string]{}, btree.Set[string]{}
	g.bytes -= g.noted()
	for w, l := range g.lists {
		g.bytes -= cap(l.deltas) - len(l.deltas)
		from := len(deltas)
		deltas = append(deltas, l.deltas...)
		moved = append(moved, *l)
		now := &moved[len(moved)-1]
		now.deltas = slices.Clip(deltas[from:])
		word := hold(w)
		lists[word] = now
		if word[0] != pieceMark[0] {
			g.begins.Insert(word)
			g.ends.Insert(hold(backwards(w)))
		}
	}
	g.lists = lists
	g.notes, g.forms = slices.Clone(g.notes), slices.Clone(g.forms)
	g.bytes += g.noted()
}

// halve drops the older half of the places.
func (g *groupIndex) halve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.oldest += (g.newest - g.oldest) / 2
	g.size -= g.size / 2 // about
	old, _ := g.noteAt(g.oldest)
	g.notes, g.forms = slices.Clone(g.notes[old:]), slices.Clone(g.forms[old:])
	g.bytes = groupBytes + g.noted()
	for s, l := range g.lists {
		if l.drop(g.oldest); l.n == 0 {
			delete(g.lists, s)
			continue
		}
		g.bytes += wordBytes + 2*len(s) + cap(l.deltas)
	}
	g.begins, g.ends = btree.Set[string]{}, btree.Set[string]{}
	for s := range g.lists {
		if s[0] != pieceMark[0] {
			g.begins.Insert(s)
			g.ends.Insert(backwards(strings.Clone(s)))
		}
	}
	g.dropClaimsLocked(g.oldest)
	for name := range g.speakers {
		g.bytes += speakerBytes + 2*len(name)
	}
}

// weight returns the size of the index, in bytes.
func (g *groupIndex) weight() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.bytes
}

// list holds the places of one word.
type list struct {
	last   int64
	n      int
	asked  int    // number of messages that only ask, and of copies; approximate after older ones were dropped
	deltas []byte // from each place to the next, read from the end
}

// add adds a place after all others, and reports whether it is new.
func (l *list) add(place int64) bool {
	if l.n > 0 {
		if l.last == place { // repeated, or another form of the same word
			return false
		}
		l.deltas = appendDelta(l.deltas, uint64(place-l.last)) //nolint:gosec // places ascend
	}
	l.last = place
	l.n++
	return true
}

// newest returns the last most places, in ascending order.
func (l *list) newest(most int) []int64 {
	out := make([]int64, min(l.n, most))
	at, rest := l.last, l.deltas
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = at
		var d uint64
		d, rest = cutDelta(rest)
		at -= int64(d) //nolint:gosec // it was a difference of two
	}
	return out
}

// drop drops the places before one.
func (l *list) drop(before int64) {
	n, from, at, rest := 0, len(l.deltas), l.last, l.deltas
	for n < l.n && at >= before {
		n, from = n+1, len(rest)
		var d uint64
		d, rest = cutDelta(rest)
		at -= int64(d) //nolint:gosec // it was a difference of two
	}
	l.asked = l.asked * n / max(1, l.n)
	l.n, l.deltas = n, slices.Clone(l.deltas[from:])
}

// A delta is written in bytes of seven bits, the highest first; all but the
// first of them are marked, so that it can be read from its end.
func appendDelta(b []byte, d uint64) []byte {
	var buf [10]byte
	i := len(buf)
	for {
		i--
		buf[i] = byte(d) & 0x7f
		if d >>= 7; d == 0 {
			break
		}
		buf[i] |= 0x80
	}
	return append(b, buf[i:]...)
}

// cutDelta returns the last delta and the bytes before it; 0 if b is empty.
func cutDelta(b []byte) (d uint64, rest []byte) {
	shift := 0
	for i := len(b) - 1; i >= 0; i-- {
		d |= uint64(b[i]&0x7f) << shift
		if shift += 7; b[i]&0x80 == 0 {
			return d, b[:i]
		}
	}
	return d, nil
}
