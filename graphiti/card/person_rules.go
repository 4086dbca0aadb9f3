package card

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	maxText = 8 << 10 // bytes of a message that are looked at: what is longer was pasted
	maxRule = 200     // characters of a sentence
	maxSaid = 8       // sentences of a message
)

// personRule is a sentence that may be a rule: it is one once a person has said it in two
// conversations.
type personRule struct {
	Text       string
	Marked     bool // its words mark it as a rule
	Everywhere bool // it says that it holds in all projects
	Own        bool // it is no rule, but a statement about its author

	never bool // something is not to be done
	words map[string]bool
	tells int // how many words that makes, of any script
}

const (
	// needed is how many telling words a rule must have without a mark; each point of its
	// marks counts as one. From marked points on it is a rule even when it is said in
	// other words, or again and again.
	needed, marked = 4, 2

	// long is how many words a rule without a mark must have in all: routine requests
	// have fewer.
	long = 6

	// ownTells is how many telling words a statement about oneself must have.
	ownTells = 2
)

// rulesIn returns the sentences of a message that may be rules, or are about its author.
// Questions, code and quotations are neither.
func rulesIn(text string) (out []personRule) {
	if len(text) > maxText {
		return nil
	}
	for s := range sentences(text) {
		s = strings.TrimLeft(s, "-*• ")
		if utf8.RuneCountInString(s) > maxRule {
			continue
		}
		if r, ok := readRule(s); ok {
			if out = append(out, r); len(out) == maxSaid {
				break
			}
		}
	}
	return out
}

// ruleOf returns the rule of a sentence that rulesIn has found before.
func ruleOf(sentence string) personRule {
	r, _, _ := weigh(sentence)
	return r
}

// weigh reads the marks and the telling words of a sentence. rest is how many words it
// has beside its marks.
func weigh(s string) (r personRule, points, rest int) {
	r = personRule{Text: s, words: make(map[string]bool)}
	points, rest = r.marks(s)
	r.telling(s)
	r.Marked = points >= marked
	r.Everywhere = r.Everywhere && r.Marked
	return r, points, rest
}

func readRule(s string) (r personRule, ok bool) {
	if strings.HasSuffix(s, ":") || asks(s) {
		return r, false
	}
	r, points, rest := weigh(s)
	tells := r.tells
	switch {
	case points <= marked && words.Asks(s):
		return r, false
	case r.Marked:
		ok = tells >= max(1, needed-points) && rest >= 2
	case words.Personal(s):
		r.Own, ok = true, tells >= ownTells
	default: // a sentence that names an error or a file is about the current task
		ok = tells >= needed-points && (points > 0 || max(tells, rest) >= long) && !ofNow.MatchString(s)
	}
	return r, ok
}

// ofNow matches the colon of an error, code, and the name of a file.
var ofNow = regexp.MustCompile("[:：`]|\\w[._]\\w")

// asks reports whether a sentence ends as a question does.
func asks(s string) bool { return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") }

// telling notes the words of a rule that tell it from others, and how many
// there are: where no spaces are set, up to three pairs of characters make a word.
func (r *personRule) telling(s string) {
	spaced, pairs := 0, 0
	words.Each(s, func(w []byte, k words.Kind) bool {
		if k != words.Content || markTerms[string(w)] || r.words[stem(string(w))] {
			return true
		}
		r.words[stem(string(w))] = true
		switch first, size := utf8.DecodeRune(w); {
		case first < firstUnspaced:
			spaced++
		case size < len(w):
			pairs++
		}
		return true
	})
	r.tells = spaced + (pairs+2)/3
}

// firstUnspaced is the first letter of the scripts whose characters come in pairs.
const firstUnspaced = 'ก'

// stem is the beginning of a word, which its other forms have too.
func stem(w string) string {
	if r := []rune(strings.TrimRight(w, "ns")); len(r) > 0 {
		return string(r[:min(len(r), 6)])
	}
	return w
}

//go:embed markers.txt
var markers string

// mark shows that a sentence is a rule.
type mark struct {
	points int
	never  bool
	all    bool // it holds in all projects
	always bool // it holds in all projects where the sentence is a rule
}

// marks are the marks of the table, by phrase; unspaced are those that may stand within
// a word, and markTerms the single words among the others. longest has, for the first
// word of marks, how many words the longest of them has.
var marks, unspaced, markTerms, longest = readMarks(markers)

func readMarks(table string) (marks map[string]mark, unspaced []string, terms map[string]bool, longest map[string]int) {
	marks, terms, longest = make(map[string]mark), make(map[string]bool), make(map[string]int)
	points := []int{3, 2, 1, 3, 1} // of the parts of a line
	for line := range strings.Lines(table) {
		lang, line, _ := strings.Cut(line, " ")
		if lang == "#" {
			continue
		}
		for part, list := range strings.Split(line, "|") {
			for w := range strings.FieldsSeq(list) {
				m := mark{points: points[part], all: part == 3, always: part == 4}
				w, m.never = strings.CutPrefix(w, "-")
				w = strings.ReplaceAll(w, "_", " ")
				if marks[w].points < m.points {
					marks[w] = m
				}
				switch r, _ := utf8.DecodeRuneInString(w); {
				case r >= firstUnspaced:
					unspaced = append(unspaced, w)
				case !strings.Contains(w, " "):
					terms[words.Term(w)] = true
					fallthrough
				default:
					first, _, _ := strings.Cut(w, " ")
					longest[first] = max(longest[first], strings.Count(w, " ")+1)
				}
			}
		}
	}
	return marks, unspaced, terms, longest
}

// bareOf returns a phrase without the signs around it.
func bareOf(phrase string) string { return strings.Trim(phrase, ".,:;!?()\"") }

// marks adds up the marks of a sentence, and counts its words beside them.
func (r *personRule) marks(s string) (points, rest int) {
	lower := strings.ReplaceAll(strings.ToLower(s), "’", "'")
	everywhere := false
	add := func(m mark) {
		points += m.points
		r.never = r.never || m.never
		r.Everywhere, everywhere = r.Everywhere || m.all, everywhere || m.always
	}
	said := strings.FieldsFunc(lower, unicode.IsSpace)
	for n := 0; n < len(said); n++ {
		found := false
		for size := min(longest[bareOf(said[n])], len(said)-n); size > 0 && !found; size-- {
			// A mark that forbids stands before what it forbids: "no, thanks" does not.
			phrase := strings.Join(said[n:n+size], " ")
			bare := bareOf(phrase)
			m, is := marks[bare]
			if found = is && (!m.never || !strings.HasSuffix(phrase, ",")); found {
				add(m)
				n += size - 1
			}
		}
		if !found && strings.ContainsFunc(said[n], unicode.IsLetter) {
			rest++
		}
	}
	if strings.ContainsFunc(lower, func(r rune) bool { return r >= firstUnspaced }) {
		for _, w := range unspaced {
			if strings.Contains(lower, w) {
				add(marks[w])
				rest++ // the marks are not all that is said
			}
		}
	}
	r.Everywhere = r.Everywhere || everywhere && points > 3
	return points, rest
}

// likeness is the part of two sentences' words that both have.
func likeness(a, b []uint64) float64 {
	both := 0
	for _, w := range a {
		if slices.Contains(b, w) {
			both++
		}
	}
	return float64(both) / float64(max(1, len(a)+len(b)-both))
}

// Tells is how many words tell a rule from others.
func (r personRule) wordCount() int { return len(r.words) }

// hashes stand for the words of a rule, in order.
func (r personRule) hashes() (out []uint64) {
	for w := range r.words {
		out = append(out, xxhash.Sum64String(w))
	}
	slices.Sort(out)
	return out
}

const (
	// sameWords is the part of the shorter one's words that two wordings of one
	// rule share, and timesLonger how much longer the other may be.
	sameWords   = 0.75
	timesLonger = 3
)

// same reports whether two sentences lay down the same rule, as far as words
// tell it.
func (r personRule) same(o personRule) bool {
	short, long := r.words, o.words
	if len(short) > len(long) {
		short, long = long, short
	}
	if r.never != o.never || len(short) == 0 || len(long) > timesLonger*len(short) {
		return false
	}
	both := 0
	for w := range short {
		if long[w] {
			both++
		}
	}
	return float64(both) >= sameWords*float64(len(short))
}

// acts matches what a rule may make somebody fetch or run: an address, a path, a pipe or
// another sign of a shell, a flag.
var acts = regexp.MustCompile("[|`$&\\\\]|://|(?:^|[\\s'\"(])(?:www\\.|[.~]{0,2}/\\w|-{1,2}[a-zA-Z]|[\\w-]+(?:\\.[\\w-]+)+/)")

// acts reports whether a rule names something to fetch or to run. Whoever can have
// it followed can have anything done: its person is asked first.
func (r personRule) acts() bool { return acts.MatchString(r.Text) }
