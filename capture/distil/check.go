package distil

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// Bounds of a fact. More than maxFacts facts of one answer are refused.
const (
	maxText  = 240 // characters
	maxAbout = 80
	maxKeys  = 8
	maxKey   = 80
	maxFacts = 64
)

// Guard recognizes instructions to a model.
type Guard struct {
	Instructs func(text string) bool // directs a model
	Overrides func(text string) bool // asks a model to abandon its instructions
}

// answered is a fact as a model writes it.
type answered struct {
	Text      string   `json:"text"`
	Kind      string   `json:"kind"`
	About     string   `json:"about"`
	Keys      []string `json:"keys"`
	Sources   []string `json:"sources"`
	Replaces  []string `json:"replaces"`
	ValidFrom *string  `json:"valid_from"`
}

var errForm = errors.New("the model's answer has not the form of facts")

// factsIn returns the acceptable facts of an answer, and the number of the others. It fails
// if the answer has no facts at all, not even an empty list.
func (g Guard) factsIn(answer string, b *graphiti.Batch) (facts []graphiti.Distilled, refused int, err error) {
	from, to := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}') // models add fences and remarks
	if from < 0 || to < from {
		return nil, 0, errForm
	}
	var got struct {
		Facts *[]json.RawMessage `json:"facts"`
	}
	if err := json.Unmarshal([]byte(answer[from:to+1]), &got); err != nil || got.Facts == nil {
		return nil, 0, errForm
	}
	for i, raw := range *got.Facts {
		var a answered
		if i < maxFacts && json.Unmarshal(raw, &a) == nil {
			if f, ok := g.accept(&a, b); ok {
				facts = append(facts, f)
				continue
			}
		}
		refused++
	}
	return facts, refused, nil
}

// accept converts a fact of an answer for storage, and reports whether it is acceptable.
func (g Guard) accept(a *answered, b *graphiti.Batch) (f graphiti.Distilled, ok bool) {
	f = graphiti.Distilled{Text: strings.TrimSpace(a.Text), Kind: a.Kind, About: strings.TrimSpace(a.About), Role: graphiti.RoleAssistant}
	if f.Text == "" || !isLine(f.Text, maxText) || !isLine(f.About, maxAbout) || len(a.Keys) > maxKeys || len(a.Sources) == 0 {
		return f, false
	}
	for _, k := range a.Keys {
		if k = strings.TrimSpace(k); k != "" && !slices.Contains(f.Keys, k) {
			f.Keys = append(f.Keys, k)
		}
		if !isLine(k, maxKey) {
			return f, false
		}
	}
	if !slices.Contains(kinds, f.Kind) {
		f.Kind = kinds[len(kinds)-1]
	}
	from, ok := sourcesOf(a, b)
	if !ok {
		return f, false
	}
	said, plainly := false, false // by the person
	known := []string{b.Project}
	for _, m := range from {
		f.Sources = append(f.Sources, m.Name)
		known = append(known, m.Text)
		said = said || m.Role == graphiti.RoleUser
		plainly = plainly || m.Role == graphiti.RoleUser && isPlain(strings.TrimSpace(m.Text))
		if m.Said.After(f.Since) {
			f.Since = m.Said
		}
	}
	for _, r := range a.Replaces {
		n, ok := numbered(r, 'F', len(b.Known))
		if !ok {
			return f, false
		}
		old := &b.Known[n]
		known = append(known, old.Text, old.About)
		if said { // answers alone end no fact
			f.Replaces = append(f.Replaces, old.Name)
		}
	}
	if said || wentOn(from, b) {
		f.Role = graphiti.RoleUser
	}
	if f.OfUser() && !plainly { // another author may have written it
		f.Kind = kinds[len(kinds)-1]
	}
	if g.orders(&f, from) || !newSource(strings.Join(known, "\n"), f.Since).has(f.Text) {
		return f, false
	}
	if a.ValidFrom != nil {
		if day, err := time.Parse(time.DateOnly, *a.ValidFrom); err == nil && isNear(day, f.Since) && day.Format(time.DateOnly) != f.Since.UTC().Format(time.DateOnly) {
			f.Since = day
		}
	}
	f.Name = nameOf(&f)
	return f, true
}

// maxPlain is the number of characters of a message that the person certainly wrote alone.
const maxPlain = 400

// isPlain reports whether a message is one short paragraph without quotations and labels.
// Any other message may quote another author, whose statements do not describe the person.
func isPlain(text string) bool {
	return isLine(text, maxPlain) && !strings.ContainsAny(text, "\"“”„‟«»「」『』《》`<>[]{}|:：")
}

// sourcesOf returns the messages that a fact is from. ok is false if one is not in the batch.
func sourcesOf(a *answered, b *graphiti.Batch) (from []*graphiti.Undistilled, ok bool) {
	for _, s := range a.Sources {
		n, ok := numbered(s, 'M', len(b.Messages))
		if !ok {
			return nil, false
		}
		if m := &b.Messages[n]; !slices.Contains(from, m) {
			from = append(from, m)
		}
	}
	return from, true
}

// numbered returns the index that a name such as M3 stands for.
func numbered(name string, letter byte, count int) (index int, ok bool) {
	if len(name) < 2 || name[0] != letter {
		return 0, false
	}
	n, err := strconv.Atoi(name[1:])
	return n - 1, err == nil && 1 <= n && n <= count
}

// wentOn reports whether the person wrote after the last of some messages of the assistant.
func wentOn(from []*graphiti.Undistilled, b *graphiti.Batch) bool {
	after := false
	for i := range b.Messages {
		m := &b.Messages[i]
		if m == from[len(from)-1] {
			after = true
		} else if after && m.Role == graphiti.RoleUser {
			return true
		}
	}
	return false
}

// orders reports whether a fact is an instruction to a model that the person did not give.
func (g Guard) orders(f *graphiti.Distilled, from []*graphiti.Undistilled) bool {
	if g.Overrides(f.Text) {
		return true
	}
	if !g.Instructs(f.Text) {
		return false
	}
	for _, m := range from {
		if m.Role != graphiti.RoleUser {
			continue
		}
		for s := range words.Sentences(m.Text) {
			if g.Instructs(strings.TrimSpace(s)) {
				return false
			}
		}
	}
	return true
}

// isLine reports whether a text is one line of visible characters, at most max of them.
func isLine(text string, max int) bool {
	return utf8.ValidString(text) && utf8.RuneCountInString(text) <= max && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) && r != '\u00a0' && r != '\u200c' && r != '\u200d'
	})
}

// nameOf returns the name of a fact.
func nameOf(f *graphiti.Distilled) string {
	sum := sha256.Sum256([]byte(strings.Join(append(slices.Clone(f.Sources), f.Text), "\x00")))
	return "graphiti-proxy.fact." + hex.EncodeToString(sum[:12])
}

// source is the text that must contain the names and numbers of a fact.
type source struct {
	text   string // folded
	nouns  bool   // in a language that capitalizes nouns
	around time.Time
}

func newSource(text string, at time.Time) *source {
	return &source{text: folded(text), nouns: words.CapitalizesNouns(text), around: at}
}

// has reports whether the source has all names and numbers of a text.
func (s *source) has(text string) bool {
	first := true // in its sentence
	for part := range strings.FieldsSeq(text) {
		if day, err := time.Parse(time.DateOnly, strings.Trim(part, "()[],.;:")); err == nil && isNear(day, s.around) { // such as "tomorrow" in the source
			first = false
			continue
		}
		for w := range strings.FieldsFuncSeq(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) }) {
			if !s.hasWord(w, first) {
				return false
			}
			first = false
		}
		first = strings.ContainsAny(part[len(part)-1:], ".!?:")
	}
	return true
}

// hasWord reports whether the source has a word, if the word is a name or a number.
func (s *source) hasWord(w string, first bool) bool {
	upper, digits := 0, false
	for _, r := range w {
		digits = digits || unicode.IsNumber(r)
		if unicode.IsUpper(r) {
			upper++
		}
	}
	lower := folded(w)
	initial, _ := utf8.DecodeRuneInString(w)
	switch {
	case digits:
		return s.hasNumber(lower)
	case upper == 0, upper == 1 && unicode.IsUpper(initial) && (first || s.nouns), upper == utf8.RuneCountInString(w) && upper <= maxAcronym:
		return true
	}
	// The source may have another form of the name.
	stem := []rune(lower)
	if len(stem) > minStem {
		stem = stem[:max(minStem, len(stem)-2)]
	}
	return strings.Contains(s.text, string(stem))
}

const (
	minStem    = 4 // characters of a name that another form of it shares
	maxAcronym = 3 // letters of a word such as IP or API, which may replace a description
)

// hasNumber reports whether the source has a word with digits, not as a part of a longer one.
func (s *source) hasNumber(w string) bool {
	for from := 0; ; {
		i := strings.Index(s.text[from:], w)
		if i < 0 {
			year, err := strconv.Atoi(w)
			return err == nil && len(w) == 4 && year-s.around.Year() <= 1 && s.around.Year()-year <= 1
		}
		at, end := from+i, from+i+len(w)
		before, _ := utf8.DecodeLastRuneInString(s.text[:at])
		after, _ := utf8.DecodeRuneInString(s.text[end:])
		first, _ := utf8.DecodeRuneInString(w)
		last, _ := utf8.DecodeLastRuneInString(w)
		longer := unicode.IsNumber(before) && unicode.IsNumber(first) || unicode.IsNumber(after) && unicode.IsNumber(last)
		if !longer {
			return true
		}
		from = at + 1
	}
}

// folded returns a text in lower case, with ASCII digits.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if '０' <= r && r <= '９' {
			return r - '０' + '0'
		}
		return unicode.ToLower(r)
	}, text)
}

// nearDays is the most days between a message and a date that it means.
const nearDays = 2 * 366

func isNear(day, at time.Time) bool {
	d := day.Sub(at)
	return d < nearDays*24*time.Hour && d > -nearDays*24*time.Hour
}
