package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// weekTalk is a conversation of testdata/weeks, which has weeks of ordinary work.
type weekTalk struct {
	Project string // "" outside of projects
	Day     int
	Lang    string
	Turns   []weekTurn
	Facts   []weekFact // that a model distils from it
}

type weekTurn struct {
	Kind         string // say, fix, ask, or plain: no memory helps with it
	User, Answer string
	Expect, Old  []string // words of the answer to a question, and of an outdated answer
	Person       bool     // the question is about the person
	Tag          string
}

type weekFact struct {
	Text, Kind, About string
	Keys, Replaces    []string
	Sources           [][2]any // number of a turn, and role
}

const weekCount = 4

func readWeek(n int) (talks []weekTalk, err error) {
	f, err := os.Open(filepath.Join("bench", "testdata", "weeks", fmt.Sprintf("week%d.jsonl", n)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var t weekTalk
		if err := dec.Decode(&t); err != nil {
			return nil, fmt.Errorf("week %d: %w", n, err)
		}
		talks = append(talks, t)
	}
	return talks, nil
}

// weekAsk is a turn as a query, with its possible answers.
type weekAsk struct {
	*weekTurn
	week, talk int
	lang       string
	project    bool
	vec        []int8
	found      []embedded.Candidate
	personal   []embedded.Candidate // of the person's own memory, for a turn in a project
}

// rows returns the messages of a turn, as a memory stores them.
func (turn *weekTurn) rows(id, session string, said time.Time) []graphiti.Row {
	source := fmt.Sprintf(`{"session":%q}`, session)
	return []graphiti.Row{
		{Name: graphiti.EpisodeName(id, graphiti.RoleUser), Role: graphiti.RoleUser, Text: turn.User, Said: said, Source: source},
		{Name: graphiti.EpisodeName(id, graphiti.RoleAssistant), Role: graphiti.RoleAssistant, Text: turn.Answer, Said: said, Source: source},
	}
}

// toldFacts are the facts that a memory was given.
type toldFacts struct {
	names map[string]string // by their texts
	key   int               // number of keys until now
}

// distil gives a memory the facts of a conversation, with a share of their keys.
func (told *toldFacts) distil(store *embedded.Store, talk *weekTalk, t int, session string, said time.Time, keys float64) error {
	ctx := context.Background()
	var facts []graphiti.Distilled
	for i := range talk.Facts {
		f := &talk.Facts[i]
		d := graphiti.Distilled{Name: fmt.Sprintf("fact-%d-%d", t, i), Text: f.Text, Kind: f.Kind, About: f.About, Role: graphiti.RoleUser, Since: said, Made: said}
		told.names[f.Text] = d.Name
		for _, k := range f.Keys {
			if told.key++; float64(told.key*37%100) < keys*100 {
				d.Keys = append(d.Keys, k)
			}
		}
		for _, r := range f.Replaces {
			d.Replaces = append(d.Replaces, told.names[r])
		}
		for _, s := range f.Sources {
			d.Sources = append(d.Sources, graphiti.EpisodeName(fmt.Sprintf("%s-%d", session, int(s[0].(float64))), graphiti.RoleType(s[1].(string))))
		}
		facts = append(facts, d)
	}
	b, _, err := store.Undistilled(ctx, 0, 0)
	for err == nil && b != nil {
		if _, err = store.KeepFacts(ctx, b, facts); err == nil {
			b, _, err = store.Undistilled(ctx, 0, 0)
		}
	}
	return err
}

// replay plays a week through an embedded memory in this process, and returns its turns. keys is
// the share of the facts' keys that the memory gets; -1: it gets no facts.
func replay(n int, dir string, by embedded.Encoder, fit *embedded.Fit, keys float64) ([]weekAsk, error) {
	talks, err := readWeek(n)
	if err != nil {
		return nil, err
	}
	store, err := embedded.OpenScratch(filepath.Join(dir, fmt.Sprintf("week%d.db", n)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	store.Understand(by, &embedded.Fit{Gates: fit.Gates, Answers: fit.Answers, Score: embedded.FitOf(sentence.Name).Score}, slog.New(slog.DiscardHandler))
	store.Distil(func() {})
	ctx, said := context.Background(), time.Now().Add(-time.Hour)
	const own = "person"
	told := toldFacts{names: make(map[string]string)}
	var all []weekAsk
	for t := range talks {
		talk := &talks[t]
		group := own
		if talk.Project != "" {
			group = "project " + talk.Project
		}
		session := fmt.Sprint("talk", t)
		var before []string
		for i := range talk.Turns {
			turn := &talk.Turns[i]
			query := turn.User
			if len(query) < 80 && len(before) > 0 {
				query += graphiti.Earlier + strings.Join(before[max(0, len(before)-2):], "\n")
			}
			a := weekAsk{weekTurn: turn, week: n, talk: t, lang: talk.Lang, project: group != own}
			here := func(list []embedded.Candidate) []embedded.Candidate { // without this conversation's own
				return slices.DeleteFunc(list, func(c embedded.Candidate) bool {
					in := func(name string) bool {
						return strings.HasPrefix(name, graphiti.EpisodeName(session+"-", "")[:len("graphiti-proxy.turn.")+len(session)+1])
					}
					return in(c.Episode) || len(c.Messages) > 0 && !slices.ContainsFunc(c.Messages, func(m string) bool { return !in(m) })
				})
			}
			if a.found, a.vec, err = store.Candidates(ctx, group, query); err != nil {
				return nil, err
			}
			a.found = here(a.found)
			if a.project {
				if a.personal, a.vec, err = store.Candidates(ctx, own, query); err != nil {
					return nil, err
				}
			}
			all = append(all, a)
			before = append(before, turn.User)
			said = said.Add(time.Second)
			err := store.Write(ctx, group, turn.rows(fmt.Sprintf("%s-%d", session, i), session, said))
			if err != nil {
				return nil, err
			}
		}
		if keys >= 0 {
			if err := told.distil(store, talk, t, session, said, keys); err != nil {
				return nil, err
			}
		}
		for !store.Compares() {
			time.Sleep(2 * time.Millisecond)
		}
	}
	return all, nil
}

var (
	datesOfLines = regexp.MustCompile(`, \d{4}-\d\d-\d\d[:,]`)
	fold         = cases.Fold()
)

// comparable returns a text to compare with the words of an answer.
func comparable(text string) string {
	text = fold.String(norm.NFKC.String(datesOfLines.ReplaceAllString(text, ":")))
	return strings.Join(strings.Fields(text), " ")
}

// holds reports whether a text contains one of the words, with any ending; a number must not be a
// part of a longer one.
func holds(text string, words []string) bool {
	text = comparable(text)
	for _, w := range words {
		w = comparable(w)
		for from := 0; ; {
			i := strings.Index(text[from:], w)
			if i < 0 {
				break
			}
			i += from
			word := func(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }
			starts := i == 0 || w[0] >= 0x80 || !word(text[i-1])
			end := i + len(w)
			ends := end == len(text) || !unicode.IsDigit(rune(w[len(w)-1])) || text[end] < '0' || text[end] > '9'
			if starts && ends {
				return true
			}
			from = i + 1
		}
	}
	return false
}
