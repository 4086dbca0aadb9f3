package embedded

import (
	"math/bits"
	"sync"
)

// reach is the number of messages before and after its own for which a word counts.
const reach = 2

// beside holds the weight of a word for a message at each distance from the word's own
// message, from -reach to reach. The next message gets more than the previous, since an
// answer follows its question.
var beside = [2*reach + 1]float64{0.1, 0.35, 1, 0.55, 0.25}

// ranked is a place in a group with the frequency of each term at the place and near it.
type ranked struct {
	place int64
	has   [maxTerms]float32
	own   uint32 // a bit for each term at the place itself
	score float64
}

// rank returns the best most places, in ascending order.
func rank(n *Numbers, terms []term, most int) []ranked {
	w := walks.Get().(*walk) //nolint:forcetypeassert // the pool's only type
	defer walks.Put(w)
	w.merge(terms)
	// The conversation changes a place's worth by less than half.
	all := bestOf(w.sum(n, terms), 3*most, &w.scores)
	byConversation(n, all, terms)
	all = bestOf(all, most, &w.scores)
	out := make([]ranked, len(all))
	at := 0
	for i := range all {
		out[i] = ranked{place: all[i].place, score: all[i].score}
		for w.visits[at].place < all[i].place-reach {
			at++
		}
		var has [maxTerms]float64
		for _, v := range w.visits[at:] {
			if v.place > all[i].place+reach {
				break
			}
			has[v.of] += beside[all[i].place-v.place+reach]
			if v.place == all[i].place {
				out[i].own |= 1 << v.of
			}
		}
		for k := range terms {
			out[i].has[k] = float32(has[k])
		}
	}
	return out
}

// byConversation raises the scores of places, in ascending order, by the share of the
// question's words in their conversation.
func byConversation(n *Numbers, all []scored, terms []term) {
	whole := 0.0
	for k := range terms {
		if !terms[k].name {
			whole += terms[k].idf
		}
	}
	if whole == 0 {
		return
	}
	near := make([]float64, len(all))
	for k := range terms {
		if terms[k].name {
			continue
		}
		from, places := 0, terms[k].places
		for i := range all {
			for from < len(places) && places[from] < all[i].place-sameConversation {
				from++
			}
			if from < len(places) && places[from] <= all[i].place+sameConversation {
				near[i] += terms[k].idf
			}
		}
	}
	for i := range all {
		all[i].score *= 1 + n.Conversation*near[i]/whole
	}
}

// scored is a place and its score.
type scored struct {
	place int64
	score float64
}

// walk goes through the places of all words at once, in ascending order. It is pooled,
// because it is the largest buffer of a search.
type walk struct {
	visits, other []visit
	sums          []scored
	scores        []float64
}

var walks = sync.Pool{New: func() any { return &walk{} }}

// visit is a place of a term.
type visit struct {
	place int64
	of    int
}

// merge puts the places of all words in order.
func (w *walk) merge(terms []term) {
	w.visits = w.visits[:0]
	var ends []int // of the parts that are in order
	for n := range terms {
		for _, p := range terms[n].places {
			w.visits = append(w.visits, visit{place: p, of: n})
		}
		ends = append(ends, len(w.visits))
	}
	for len(ends) > 1 {
		out, left, from := w.other[:0], ends[:0], 0
		for i := 0; i < len(ends); i += 2 {
			middle, end := ends[i], ends[min(i+1, len(ends)-1)]
			out = mergeTwo(out, w.visits[from:middle], w.visits[middle:end])
			left, from = append(left, len(out)), end
		}
		w.visits, w.other, ends = out, w.visits, left
	}
}

func mergeTwo(out, a, b []visit) []visit {
	for len(a) > 0 && len(b) > 0 {
		if a[0].place <= b[0].place {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// sum returns the scores of the places within reach of a word.
func (w *walk) sum(numbers *Numbers, terms []term) []scored {
	w.sums = w.sums[:0]
	var weights [maxTerms]float64
	var alone [maxTerms][2*reach + 1]float64 // score of a place with only one word in reach
	saturation := numbers.Saturation
	for n := range terms {
		weights[n] = terms[n].weight(numbers) * (saturation + 1)
		for d, has := range beside {
			alone[n][d] = weights[n] * has / (has + saturation)
		}
	}
	for i := 0; i < len(w.visits); {
		// Words in each other's reach are scored together, with all places between them.
		first, n := w.visits[i], i+1
		for n < len(w.visits) && w.visits[n].place-w.visits[n-1].place <= 2*reach {
			n++
		}
		some := w.visits[i:n]
		i = n
		if len(some) == 1 {
			for q := max(1, first.place-reach); q <= first.place+reach; q++ {
				w.sums = append(w.sums, scored{q, alone[first.of][q-first.place+reach]})
			}
			continue
		}
		from := 0
		for q := max(1, first.place-reach); q <= some[len(some)-1].place+reach; q++ {
			for some[from].place < q-reach {
				from++
			}
			w.sums = append(w.sums, scored{q, worthAt(numbers, q, some[from:], weights[:])})
		}
	}
	return w.sums
}

// worthAt returns the score of a place from the visits near it. near is in ascending order,
// with the visits out of reach last.
func worthAt(numbers *Numbers, place int64, near []visit, weights []float64) (sum float64) {
	var has [maxTerms]float64
	there := uint64(0) // a bit for each term in reach
	for i := range near {
		v := &near[i]
		if v.place > place+reach {
			break
		}
		there |= 1 << v.of
		has[v.of] += beside[place-v.place+reach]
	}
	for ; there != 0; there &= there - 1 {
		n := bits.TrailingZeros64(there)
		sum += weights[n] * has[n] / (has[n] + numbers.Saturation)
	}
	return sum
}

// bestOf returns the best most places, in their order, and of equal places the last. scores
// is a buffer.
func bestOf(all []scored, most int, scores *[]float64) []scored {
	if len(all) <= most {
		return all
	}
	some := (*scores)[:0]
	for i := range all {
		some = append(some, all[i].score)
	}
	*scores = some
	least := nthLargest(some, most)
	equal := most // number of places with the least score that remain
	ties := 0
	for i := range all {
		if all[i].score > least {
			equal--
		} else if all[i].score == least {
			ties++
		}
	}
	out := all[:0]
	for _, s := range all {
		if s.score == least {
			ties--
		}
		if s.score > least || s.score == least && ties < equal {
			out = append(out, s)
		}
	}
	return out
}

// nthLargest returns the n-th largest number. It changes the order of all.
func nthLargest(all []float64, n int) float64 {
	// The part between low and high holds it.
	low, high := 0, len(all)-1
	for low < high {
		middle, i, j := all[(low+high)/2], low, high
		for i <= j {
			for all[i] > middle {
				i++
			}
			for middle > all[j] {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n-1 <= j:
			high = j
		case n-1 >= i:
			low = i
		default:
			return middle
		}
	}
	return all[n-1]
}
