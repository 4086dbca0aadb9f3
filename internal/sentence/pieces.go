package sentence

import (
	"math"
	"slices"
	"sort"
	"strings"
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

// normalized returns a text as the pieces have it.
func normalized(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\u200b' || r == '\u200e' || r == '\u200f' || r == '\ufeff' || r == '▁':
			return ' '
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(norm.NFKC.String(text)), space)
}

// split returns the rows of the most likely pieces of a text, at most most of them, between
// those of the begin and the end.
func (p *pieces) split(text string, most int) []int {
	text = normalized(text)
	rows := []int{begin}
	if text == "" {
		return append(rows, unknown, end)
	}
	text = space + text
	type arrival struct {
		score      float64
		from, with int // start and row of the last piece
	}
	best := make([]arrival, len(text)+1)
	for i := range best[1:] {
		best[i+1].score = math.Inf(-1)
	}
	for from := 0; from < len(text); {
		_, size := utf8.DecodeRuneInString(text[from:])
		arrive := func(length, row int, score float64) {
			if a := &best[from+length]; best[from].score+score > a.score {
				*a = arrival{best[from].score + score, from, row}
			}
		}
		single := false
		p.prefixes(text[from:], func(piece, length int) {
			single = single || length == size
			arrive(length, firstPiece+piece, scoreUnit*float64(uint16At(p.scores, piece)))
		})
		if !single {
			arrive(size, unknown, unknownScore)
		}
		from += size
	}
	for at := len(text); at > 0; at = best[at].from {
		rows = append(rows, best[at].with)
	}
	slices.Reverse(rows[1:])
	return append(rows[:min(len(rows), most-1)], end)
}

// prefixes calls each for every piece that is a prefix of text, the shortest first.
func (p *pieces) prefixes(text string, each func(piece, length int)) {
	low, high := 0, p.count // pieces that begin with text[:i]
	for i := range len(text) {
		byteOf := func(piece int) int {
			if s := p.at(piece); len(s) > i {
				return int(s[i])
			}
			return -1
		}
		b := int(text[i])
		low += sort.Search(high-low, func(n int) bool { return byteOf(low+n) >= b })
		high = low + sort.Search(high-low, func(n int) bool { return byteOf(low+n) > b })
		if low == high {
			return
		}
		if len(p.at(low)) == i+1 {
			each(low, i+1)
		}
	}
}
