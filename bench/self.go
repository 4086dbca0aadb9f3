package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// selfRow is an example of testdata/self.tsv, or an ordinary message of a week.
type selfRow struct {
	subject, kind string // "" for a message of a week
	vec           []float32
}

// readSelf returns the examples, also in lower case without a full stop.
func readSelf(by *cached) (rows []selfRow, err error) {
	b, err := os.ReadFile(filepath.Join("bench", "testdata", "self.tsv"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if line[0] == '#' || len(fields) < 3 {
			continue
		}
		texts := []string{fields[2], strings.TrimRight(strings.ToLower(fields[2]), ".?")}
		for _, text := range slices.Compact(texts) {
			v, err := by.Encode(context.Background(), text)
			if err != nil {
				return nil, err
			}
			rows = append(rows, selfRow{fields[0], fields[1], v})
		}
	}
	return rows, nil
}

// ordinary returns the messages of all weeks but one, without statements about the person and
// requests for them.
func ordinary(by *cached, left int) (rows []selfRow, err error) {
	for n := 1; n <= weekCount; n++ {
		talks, err := readWeek(n)
		if err != nil {
			return nil, err
		}
		var known []string
		for _, talk := range talks {
			for _, t := range talk.Turns {
				if t.Person {
					known = append(known, t.Expect...)
				}
			}
		}
		for _, talk := range talks {
			for _, t := range talk.Turns {
				says := t.Kind == "say" || t.Kind == "fix"
				if n == left || t.Person || says && talk.Project == "" || holds(t.User, known) {
					continue
				}
				v, err := by.Encode(context.Background(), t.User[:min(len(t.User), 1000)])
				if err != nil {
					return nil, err
				}
				rows = append(rows, selfRow{vec: v})
			}
		}
	}
	return rows, nil
}

// fitSelf fits the gates of subjects.
func (c *corpus) fitSelf(by *cached, left int) (g embedded.SelfGates, err error) {
	rows, err := readSelf(by)
	if err != nil {
		return g, err
	}
	more, err := ordinary(by, left)
	if err != nil {
		return g, err
	}
	rows = append(rows, more...)
	fit := func(subject, kind string) embedded.Gate {
		var all []example
		for _, r := range rows {
			all = append(all, example{c.centered(r.vec), r.subject == subject && r.kind == kind})
		}
		return newGate(all, 0.03)
	}
	for k, subject := range embedded.Subjects {
		g.Says[k], g.Needs[k] = fit(subject, "says"), fit(subject, "needs")
	}
	g.Says[len(embedded.Subjects)] = fit("private", "says")
	return g, nil
}
