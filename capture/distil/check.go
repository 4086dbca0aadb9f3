package distil

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
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

// answered is a fact as a model writes it.
type answered struct {
	Text       string   `json:"text"`
	Kind       string   `json:"kind"`
	About      string   `json:"about"`
	Keys       []string `json:"keys"`
	Sources    []string `json:"sources"`
	Replaces   []string `json:"replaces"`
	ValidFrom  *string  `json:"valid_from"`
	ValidUntil *string  `json:"valid_until"`
}

var errForm = errors.New("the model's answer has not the form of facts")

// factsIn returns the acceptable facts of an answer, and the number of the others. It fails
// if the answer has no facts at all, not even an empty list.
func factsIn(answer string, b *graphiti.Batch) (facts []graphiti.Distilled, refused int, err error) {
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
			if f, ok := accept(&a, b); ok {
				if same := slices.IndexFunc(facts, func(o graphiti.Distilled) bool { return o.Name == f.Name }); same >= 0 {
					facts[same].Keys = append(facts[same].Keys, f.Keys...)
					continue
				}
				facts = append(facts, f)
				continue
			}
		}
		refused++
	}
	return facts, refused, nil
}

// accept converts a fact of an answer for storage, and reports whether it is acceptable.
func accept(a *answered, b *graphiti.Batch) (f graphiti.Distilled, ok bool) {
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
	plainly := false // said by the person
	known := []string{b.Project}
	for _, m := range from {
		f.Sources = append(f.Sources, m.Name)
		known = append(known, m.Text)
		if m.Role == graphiti.RoleUser {
			f.Role = graphiti.RoleUser
			plainly = plainly || isPlain(strings.TrimSpace(m.Text))
		}
		if m.Said.After(f.Since) {
			f.Since = m.Said
		}
	}
	if wentOn(from, b) {
		f.Role = graphiti.RoleUser
	}
	if f.OfUser() && !plainly { // another author may have written it
		f.Kind = kinds[len(kinds)-1]
	}
	for _, r := range a.Replaces {
		n, ok := numbered(r, 'F', len(b.Known))
		if !ok {
			return f, false
		}
		if old := &b.Known[n]; plainly && concerns(&f, old) { // a document or an answer ends no fact
			known = append(known, old.Text, old.About)
			f.Replaces = append(f.Replaces, old.Name)
		}
	}
	for i := range b.Messages { // "it weighs 12 kilos" may be a fact about the robot of another message
		if m := &b.Messages[i]; m.Role == graphiti.RoleUser && isPlain(strings.TrimSpace(m.Text)) {
			known = append(known, m.Text)
		}
	}
	s := newSource(strings.Join(known, "\n"), f.Since)
	s.dated = slices.ContainsFunc(from, func(m *graphiti.Undistilled) bool { return dates.MatchString(decimal(m.Text)) })
	if !s.has(f.Text) && (f.Kind == "error_fix" || !restate(&f, from, b)) { // the statement has only the error
		return f, false
	}
	if day, ok := nearDay(a.ValidFrom, f.Since); ok && day.Format(time.DateOnly) != f.Since.UTC().Format(time.DateOnly) {
		f.Since = day
	}
	if day, ok := nearDay(a.ValidUntil, f.Since); ok {
		if end := day.AddDate(0, 0, 1).Add(-time.Second); end.After(f.Since) { // the last day counts
			f.Until = end
		}
	}
	f.Name = nameOf(&f)
	return f, true
}

// restate gives a fact with other words than its sources the words of the newest statement of the
// person in one line, and reports whether there is one. It then ends only facts that this names.
func restate(f *graphiti.Distilled, from []*graphiti.Undistilled, b *graphiti.Batch) bool {
	f.Text = ""
	for _, m := range from {
		if t := strings.TrimSpace(m.Text); m.Role == graphiti.RoleUser && isLine(t, maxText) && words.States(t) {
			f.Text = t
		}
	}
	f.Replaces = slices.DeleteFunc(f.Replaces, func(name string) bool {
		return !slices.ContainsFunc(b.Known, func(old graphiti.Distilled) bool { return old.Name == name && names(f.Text, &old) })
	})
	return f.Text != ""
}

// maxPlain is the number of characters of a message that the person certainly wrote alone.
const maxPlain = 400

// isPlain reports whether a message is one short paragraph without quotations, labels and a
// task. Any other message may contain a text of another author, whose statements neither
// describe the person nor end a fact.
func isPlain(text string) bool {
	return isLine(text, maxPlain) && !strings.ContainsAny(label.ReplaceAllString(text, ""), "\"“”„‟«»「」『』《》`<>[]{}|:：") &&
		(!words.Requests(text) || words.Changes(text))
}

// label matches colons of times and addresses.
var label = regexp.MustCompile(`\d[:：]\d|://`)

// concerns reports whether a fact can replace another: it names the other's subject, or another
// content word of it. Facts about the person must be of one kind.
func concerns(f, old *graphiti.Distilled) bool {
	if f.OfUser() && old.OfUser() && f.Kind == old.Kind {
		return true
	}
	return names(f.Text, old)
}

// names reports whether a text has a content word of a fact or of its subject.
func names(text string, old *graphiti.Distilled) bool {
	its := words.Of(old.Text+"\n"+old.About, maxText)
	return slices.ContainsFunc(words.Of(text, maxText), func(w string) bool {
		return utf8.RuneCountInString(w) > 1 && w[0] > '9' && !words.IsLight(w) && !isPerson[w] && slices.Contains(its, w)
	})
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

// nearDay returns a date of an answer. ok is false without one, or if it is far from a time.
func nearDay(date *string, at time.Time) (day time.Time, ok bool) {
	if date == nil {
		return day, false
	}
	day, err := time.Parse(time.DateOnly, *date)
	return day, err == nil && isNear(day, at)
}

// nearDays is the most days between a message and a date that it means.
const nearDays = 2 * 366

func isNear(day, at time.Time) bool {
	d := day.Sub(at)
	return d < nearDays*24*time.Hour && d > -nearDays*24*time.Hour
}
