package embedded

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
)

// reach is how far from where it was said a word counts, in messages.
const reach = 2

// beside says how much of a word counts, for the distance from where it was
// said to the message, from -reach on: an answer follows its question.
var beside = [2*reach + 1]float64{0.1, 0.35, 1, 0.55, 0.25}

// ranked is a place in a group with how often it has, or stands beside, each
// term.
type ranked struct {
	place int64
	has   [maxTerms]float32
	score float64
}

// rank returns the best places, at most as many.
func rank(terms []term, related []answering, most int) []ranked {
	visits := visitsOf(terms)
	for _, a := range related {
		visits += len(a)
	}
	sums := tallies.Get().(*tally) //nolint:forcetypeassert // the pool's only type
	defer tallies.Put(sums)
	sums.empty((2*reach + 1) * visits)
	for n := range terms {
		weight := terms[n].weight() * (saturation + 1)
		terms[n].each(func(place int64, has float64) { sums.add(place, weight*has/(has+saturation)) })
	}
	for _, a := range related {
		a.each(func(place int64, tells float64) { sums.add(place, relatedPart*tells) })
	}
	// What else has the words changes a place's worth by less than half.
	all := bestOf(sums.all(), 3*most)
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(a.place, b.place) })
	byTalk(all, terms)
	all = bestOf(all, most)
	out := make([]ranked, len(all))
	for i := range all {
		out[i] = ranked{place: all[i].place, score: all[i].score}
		for n := range terms {
			out[i].has[n] = float32(terms[n].at(all[i].place))
		}
	}
	return out
}

// visitsOf is how many messages these words are read in.
func visitsOf(terms []term) (n int) {
	for i := range terms {
		n += len(terms[i].places)
	}
	return n
}

// each calls f for the places where a term counts, in ascending order, with how
// much of it is there.
func (t *term) each(f func(place int64, has float64)) {
	from, last := 0, int64(0) // the first place in reach, and where f was called last
	for _, p := range t.places {
		for q := max(last+1, p-reach); q <= p+reach; q++ {
			for t.places[from] < q-reach {
				from++
			}
			f(q, t.count(from, q))
			last = q
		}
	}
}

// at is how much of a term is at a place.
func (t *term) at(place int64) float64 {
	from, _ := slices.BinarySearch(t.places, place-reach)
	return t.count(from, place)
}

// count adds up what a place has of a term whose first place in reach is the
// one with that number.
func (t *term) count(from int, place int64) (has float64) {
	for _, p := range t.places[from:] {
		if p > place+reach {
			break
		}
		has += beside[place-p+reach]
	}
	return has
}

// byTalk raises places, in ascending order, by the part of the words that their
// talk has.
func byTalk(all []scored, terms []term) {
	whole := 0.0
	for n := range terms {
		if !terms[n].name {
			whole += terms[n].idf
		}
	}
	if whole == 0 {
		return
	}
	near := make([]float64, len(all))
	for n := range terms {
		if terms[n].name {
			continue
		}
		k, places := 0, terms[n].places
		for i := range all {
			for k < len(places) && places[k] < all[i].place-sameTalk {
				k++
			}
			if k < len(places) && places[k] <= all[i].place+sameTalk {
				near[i] += terms[n].idf
			}
		}
	}
	for i := range all {
		all[i].score *= 1 + talkWeight*near[i]/whole
	}
}

// scored is a place and what it is worth.
type scored struct {
	place int64
	score float64
}

// tally adds up what places are worth: a hash table of what is added once, in a
// piece of memory.
type tally struct {
	slots []scored // a place of 0 is free
	shift int
}

// tallies are used again: one is larger than all else that a search needs.
var tallies = sync.Pool{New: func() any { return &tally{} }}

// empty makes room for so many places.
func (t *tally) empty(most int) {
	n := bits.Len(uint(2 * most)) //nolint:gosec // mostVisits bounds it
	t.slots, t.shift = slices.Grow(t.slots[:0], 1<<n)[:1<<n], 64-n
	clear(t.slots)
}

func (t *tally) add(place int64, score float64) {
	const spread = 0x9e3779b97f4a7c15                                                    // 2^64 divided by the golden ratio
	for i := uint64(place) * spread >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) { //nolint:gosec // places are positive
		if s := &t.slots[i]; s.place == place || s.place == 0 {
			s.place = place
			s.score += score
			return
		}
	}
}

// all returns what was added up, in the tally's own memory: until it is emptied
// it is of no other use.
func (t *tally) all() []scored {
	return slices.DeleteFunc(t.slots, func(s scored) bool { return s.place == 0 })
}

// bestOf leaves the best, at most as many, in any order; of equal ones the
// newest.
func bestOf(all []scored, most int) []scored {
	if len(all) <= most {
		return all
	}
	better := func(a, b *scored) bool { return a.score > b.score || a.score == b.score && a.place > b.place }
	// The part between low and high holds the one that is the last to be left.
	for low, high := 0, len(all)-1; low < high; {
		middle, i, j := all[(low+high)/2], low, high
		for i <= j {
			for better(&all[i], &middle) {
				i++
			}
			for better(&middle, &all[j]) {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case most-1 <= j:
			high = j
		case most-1 >= i:
			low = i
		default:
			low = high
		}
	}
	return all[:most]
}
