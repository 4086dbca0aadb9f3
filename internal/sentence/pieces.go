package sentence

import (
	"math"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// The first rows of the table.
	unknown    = 0
	begin      = 1
	end        = 2
	firstPiece = 3

	space = "▁" // before each word

	longestPiece = 48 // bytes
	startsEach   = 64
	scoreUnit    = -20.0 / 65535
	unknownScore = -30
)

// pieces are the parts of words that the model knows, sorted.
type pieces struct {
	count    int
	starts   string // of each 64th piece
	relative string // start of each piece after that
	scores   string
	text     string
	known    [1 + 256]atomic.Uint64 // ranges that begun has found: of the space, and of each byte
}

func (p *pieces) read(r *reader, count, size int) {
	groups := count/startsEach + 1
	p.count, p.starts, p.relative = count, r.take(4*groups), r.take(2*groups*startsEach)
	p.scores, p.text = r.take(2*count), r.take(size)
}

func (p *pieces) start(i int) int {
	return int(uint32At(p.starts, i/startsEach)) + uint16At(p.relative, i)
}

func (p *pieces) at(i int) string { return p.text[p.start(i):p.start(i+1)] }

// words returns the words of a text as the pieces have them, each after a space.
func words(text string) []string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\u200b' || r == '\u200e' || r == '\u200f' || r == '\ufeff' || r == '▁':
			return ' '
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return -1
		}
		return r
	}, text)
	all := strings.Fields(norm.NFKC.String(text))
	for i := range all {
		all[i] = space + all[i]
	}
	return all
}

// split returns the rows of the most likely pieces of a text, at most most of them, between
// those of the begin and the end.
func (p *pieces) split(text string, most int) []int {
	text = text[:min(len(text), most*longestPiece)] // the pieces need no more bytes
	rows := []int{begin}
	all := words(text)
	if len(all) == 0 {
		return append(rows, unknown, end)
	}
	var ways []arrival
	for _, word := range all { // no piece has a part of two words
		if len(rows) >= most {
			break
		}
		rows, ways = p.splitWord(rows, word, ways)
	}
	return append(rows[:min(len(rows), most-1)], end)
}

// arrival is the best way to a place in a word.
type arrival struct {
	score      float64
	from, with int // start and row of the last piece
}

// splitWord appends the rows of the most likely pieces of a word. It uses the memory of ways.
func (p *pieces) splitWord(rows []int, word string, ways []arrival) (_ []int, best []arrival) {
	best = sized(ways, len(word)+1)
	best[0] = arrival{}
	for i := range best[1:] {
		best[i+1].score = math.Inf(-1)
	}
	for from := 0; from < len(word); {
		_, size := utf8.DecodeRuneInString(word[from:])
		arrive := func(length, row int, score float64) {
			if a := &best[from+length]; best[from].score+score > a.score {
				*a = arrival{best[from].score + score, from, row}
			}
		}
		single := false
		p.prefixes(word[from:], func(piece, length int) {
			single = single || length == size
			arrive(length, firstPiece+piece, scoreUnit*float64(uint16At(p.scores, piece)))
		})
		if !single {
			arrive(size, unknown, unknownScore)
		}
		from += size
	}
	before := len(rows)
	for at := len(word); at > 0; at = best[at].from {
		rows = append(rows, best[at].with)
	}
	slices.Reverse(rows[before:])
	return rows, best
}

// prefixes calls each for every piece that is a prefix of text, the shortest first.
func (p *pieces) prefixes(text string, each func(piece, length int)) {
	n := 1
	if strings.HasPrefix(text, space) {
		n = len(space)
	}
	low, high := p.begun(text[:n])
	for low < high {
		if len(p.at(low)) == n {
			each(low, n)
		}
		if n == len(text) {
			return
		}
		low, high = p.narrowed(low, high, n, text[n])
		n++
	}
}

// begun returns the range of the pieces that begin with a byte or a space. It is searched for
// once.
func (p *pieces) begun(start string) (low, high int) {
	known := &p.known[0]
	if len(start) == 1 {
		known = &p.known[1+int(start[0])]
	}
	if k := known.Load(); k != 0 {
		return int(k >> 32), int(uint32(k)) //nolint:gosec // its halves
	}
	high = p.count
	for i := range len(start) {
		low, high = p.narrowed(low, high, i, start[i])
	}
	known.Store(uint64(low)<<32 | uint64(high)) //nolint:gosec // below 2^32
	return low, high
}

// narrowed returns the range of the pieces, of those in a range, that have a byte at n.
func (p *pieces) narrowed(low, high, n int, b byte) (from, to int) {
	byteOf := func(piece int) int {
		if s := p.at(piece); len(s) > n {
			return int(s[n])
		}
		return -1
	}
	from = low + sort.Search(high-low, func(i int) bool { return byteOf(low+i) >= int(b) })
	return from, from + sort.Search(high-from, func(i int) bool { return byteOf(from+i) > int(b) })
}
