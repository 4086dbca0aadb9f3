package embedded

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// Subjects are the subjects of statements about the person that answer requests, such as "put my
// name into the licence". Examples: bench/testdata/self.tsv.
var Subjects = [...]string{"name", "home", "language", "food", "body", "work", "family", "machine", "commits"}

// SelfGates are the gates of subjects.
type SelfGates struct {
	Says  [len(Subjects) + 1]Gate // statements about the person; the last gate is for private ones
	Needs [len(Subjects)]Gate     // requests for such a statement
}

// The results of gates that suffice. A wrong line would show something private.
const (
	surelyNeeds   = 2.0 / gateUnit
	surelySays    = 2.25 / gateUnit
	maybeSays     = -3.0 / gateUnit // for the whole message, which may say more
	surelyPrivate = 1.6 / gateUnit  // for the gate of private statements
	factSays      = -2.0 / gateUnit // for a fact: the gate learned from other forms, "I live in Graz"

	mostSelf     = 2   // statements for one subject
	mostRead     = 4   // statements to read for one subject
	selfLength   = 200 // bytes of such a statement
	selfStrength = 0.5
	ofWhole      = 0.6 // strength by words of a fact with nearly all words of a question
)

// ofSelf returns the statements about the person that answer a question or request.
func (e *Store) ofSelf(ctx context.Context, g *groupIndex, v *groupVectors, q *asked) (all []*hit, err error) {
	for k := range Subjects {
		if e.fit.Self.Needs[k].Of(q.vec) < surelyNeeds {
			continue
		}
		hits := saying(v, g, &e.fit.Self.Says[k])
		if err := e.load(ctx, g.groupNumber(), hits); err != nil {
			return nil, err
		}
		n := len(all)
		for _, h := range hits {
			if len(all) < n+mostSelf && h.row != nil && e.saysOfSelf(ctx, h.content, k) && !hasPlace(all, h.place) {
				all = append(all, h)
			}
		}
	}
	return all, nil
}

// isAbout reports whether a question is about a fact: it has a whole key of the fact, or needs its
// subject and is in the first person or has a word of the fact, or is in the first person and a fact
// without keys has nearly all its words. Who the person is concerns only questions about them.
func (e *Store) isAbout(q *asked, h *hit) bool {
	if q.asks && q.personal && h.covers >= ofWhole && h.note.Flags&isKeyless != 0 || rarestAt(q.keys, h.place) > 0 && (q.personal || h.note.Flags&isWho == 0) {
		return true
	}
	vec := q.vectors.at(h.place)
	if vec == nil || !e.ownModel() || h.meant && !q.personal {
		return false
	}
	for k := range Subjects {
		if e.fit.Self.Needs[k].Of(q.vec) >= surelyNeeds && e.fit.Self.Says[k].Of(vec[:len(q.vec)]) >= factSays {
			return true
		}
	}
	return false
}

// isPrivate reports whether a message is private by its gate: a word in common is not enough to show it
// in a project.
func (e *Store) isPrivate(q *asked, h *hit) bool {
	vec := q.vectors.at(h.place)
	return vec != nil && e.ownModel() && e.fit.Self.Says[len(Subjects)].Of(vec) >= surelyPrivate
}

func hasPlace(all []*hit, place int64) bool {
	return slices.ContainsFunc(all, func(h *hit) bool { return h.place == place })
}

// saying returns the most likely statements about a subject, the newest first. It skips messages that a
// model has read, unless their facts are about the person and valid.
func saying(v *groupVectors, g *groupIndex, subject *Gate) (hits []*hit) {
	var all []scored
	for i, vec := range v.vecs {
		note, ok := g.note(v.places[i])
		if !ok || note.isNamed() || note.Length > selfLength || note.Flags&(isNoStatement|isCurated|isFact) != 0 {
			continue
		}
		if says := subject.Of(vec); says >= maybeSays && (note.Flags&isDistilled == 0 || g.tell(v.places[i], isOfUser)) {
			all = append(all, scored{v.places[i], says})
		}
	}
	for _, s := range bestOf(all, mostRead, new([]float64)) {
		note, _ := g.note(s.place)
		hits = append(hits, &hit{place: s.place, note: note, ranked: &ranked{place: s.place}, strength: selfStrength, ofSelf: true})
	}
	return hits
}

// saysOfSelf reports whether a part of a message says something about a subject, and no part is
// private.
func (e *Store) saysOfSelf(ctx context.Context, text string, subject int) bool {
	vecs, err := e.mean.recent.embed(ctx, append(partsToRead(text), text), &e.mean.encoder)
	says, private := -2.0, 0.0
	for _, vec := range vecs {
		says = max(says, e.fit.Self.Says[subject].Of(vec))
		private = max(private, e.fit.Self.Says[len(Subjects)].Of(vec))
	}
	return err == nil && says-private >= surelySays && !strings.ContainsAny(text, "\n\"“”«»`")
}

// clauseEnd matches the end of a part of a message.
var clauseEnd = regexp.MustCompile(`[.;!?,:\n。！？、，]+\s*|\s+-\s+`)

// partsToRead returns the clauses of a message, and overlapping parts of long ones: people who
// dictate use no punctuation.
func partsToRead(text string) (parts []string) {
	const long, part, step = 8, 6, 3
	for _, clause := range clauseEnd.Split(text, -1) {
		words := strings.Fields(clause)
		if len(words) > long {
			for i := 0; i+step < len(words); i += step {
				parts = append(parts, strings.Join(words[i:min(i+part, len(words))], " "))
			}
		} else if len(words) > 0 {
			parts = append(parts, strings.Join(words, " "))
		}
	}
	return parts
}

// tell reports whether all facts of a message are valid, and one has this flag.
func (g *groupIndex) tell(message int64, flag uint16) bool {
	facts := g.factsFrom(message)
	return !slices.ContainsFunc(facts, g.isOver) && slices.ContainsFunc(facts, func(p int64) bool { n, _ := g.note(p); return n.Flags&flag != 0 })
}
