package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// EntitiesRequest is the input of Entities.
type EntitiesRequest struct {
	Selector
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"`
}

// Named is the answer of Entities.
type Named struct {
	Entities []Entity `json:"entities"`
	Groups   []string `json:"-"`
}

// Entity is a name in search results.
type Entity struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Summary string `json:"summary"` // best search result with the name
	Count   int    `json:"count"`   // search results with the name
}

// Entities finds people and things.
var Entities = Operation[EntitiesRequest, Named]{
	Spec:    Spec{Name: "memory/entities", About: "Names of a query in search results", People: true},
	Default: EntitiesRequest{Limit: 10},
	Run:     withMemory((*Service).Entities),
	Audit:   func(in *EntitiesRequest, out *Named) Entry { return in.audit("find entities", out.Groups) },
}

const (
	namedIn    = 50  // search results of a group to read names in
	maxSummary = 200 // characters
)

// Entities returns up to Limit entities of the groups of a recall.
func (sv *Service) Entities(ctx context.Context, in *EntitiesRequest) (out Named, err error) {
	out.Entities = []Entity{}
	if strings.TrimSpace(in.Query) == "" {
		return out, invalid("query: is empty; write a text to search for")
	}
	if err := cmp.Or(CheckLimit(in.Limit), in.check()); err != nil {
		return out, err
	}
	targets, err := sv.targets(in.Selector)
	if err != nil {
		return out, err
	}
	query := sv.o.Pipeline.Redacted(in.Query)
	for _, t := range sv.Recallable(targets) {
		out.Groups = append(out.Groups, t.Group)
		found, err := sv.o.Memory.Search(ctx, []string{t.Group}, query, namedIn)
		if err != nil {
			return out, withRemedy(err)
		}
		out.count(found, words.Of(query, namedIn))
	}
	out.Entities = out.Entities[:min(in.Limit, len(out.Entities))]
	return out, nil
}

// count adds the names in search results that have a word of a query.
func (n *Named) count(found []graphiti.Fact, asked []string) {
	for i := range found {
		for _, name := range namesIn(found[i].Text, asked) {
			id := graphiti.MessageID("mention " + strings.ToLower(name))
			at := slices.IndexFunc(n.Entities, func(e Entity) bool { return e.ID == id })
			if at < 0 {
				at = len(n.Entities)
				n.Entities = append(n.Entities, Entity{ID: id, Name: name, Summary: graphiti.OneLine(found[i].Text, maxSummary)})
			}
			n.Entities[at].Count++
		}
	}
}

// namesIn returns the names in a text that contain a word of a query, each once. A name is a
// word with a capital letter or a digit, or in a script without case, with its capitalized
// neighbors.
func namesIn(text string, asked []string) (names []string) {
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./@-", r)
	})
	ends := func(i int) bool { return i < 0 || i >= len(list) || strings.IndexFunc(list[i], unicode.IsUpper) != 0 }
	for i, w := range list {
		isName := strings.ContainsFunc(w, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) || unicode.Is(unicode.Lo, r) })
		if !isName || !slices.ContainsFunc(words.Of(w, len(asked)), func(part string) bool { return slices.Contains(asked, part) }) {
			continue
		}
		from, to := i, i+1
		for !ends(i) && !ends(from-1) && !strings.HasSuffix(list[from-1], ".") {
			from--
		}
		for !ends(i) && !ends(to) && !strings.HasSuffix(list[to-1], ".") {
			to++
		}
		if name := graphiti.OneLine(strings.Trim(strings.Join(list[from:to], " "), "./-"), maxBegins); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
