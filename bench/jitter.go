package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

const (
	jitterRuns = 12
	jitterPart = 0.25 // largest relative change of a number
	fitStep    = 1.25 // factor by which a fit changes a number
	fitGain    = 0.0005
)

// memories is an embedded memory in this process, with a group for each conversation.
type memories struct {
	store   *embedded.Store
	chooser *inject.Planner
	convs   []*locomo
	texts   []map[string]string // of each conversation, by ID
	facts   int
}

func remember(dir string, convs []*locomo, chars, facts int) (*memories, error) {
	store, err := embedded.Open(filepath.Join(dir, "memory.db"))
	if err != nil {
		return nil, err
	}
	m := &memories{store: store, convs: convs, facts: facts,
		chooser: inject.New(inject.Services{}, graphiti.Namer{}, inject.RecallSettings{MaxFacts: facts, MaxChars: chars})}
	for i, c := range convs {
		messages, texts, err := c.messages()
		if err == nil {
			err = store.Write(context.Background(), groupOf(i), messages)
		}
		if err != nil {
			m.close()
			return nil, err
		}
		m.texts = append(m.texts, texts)
	}
	return m, nil
}

func groupOf(i int) string { return fmt.Sprint("conversation", i) }

func (m *memories) close() {
	m.chooser.Close()
	_ = m.store.Close()
}

// shares returns the share of the evidence that blocks show with these numbers, over all
// questions and by category.
func (m *memories) shares(n embedded.Numbers) (share [5]float64, err error) {
	m.store.Tune(n)
	var asked [5]float64
	for i, c := range m.convs {
		for _, q := range c.QA {
			evidence := evidenceOf(q.Evidence, m.texts[i])
			if q.Category < 1 || q.Category > 4 || len(evidence) == 0 {
				continue
			}
			found, err := m.store.Search(context.Background(), []string{groupOf(i)}, q.Question, 2*m.facts)
			if err != nil {
				return share, err
			}
			all, _ := m.chooser.Choose(q.Question, []inject.Scoped{{Scope: graphiti.ScopeUser, Facts: found}})
			var block strings.Builder
			for _, a := range all {
				if a.Verdict == inject.Shown {
					block.WriteString(a.Line + "\n")
				}
			}
			hits := 0.0
			for _, text := range evidence {
				if strings.Contains(block.String(), shownAs(text)) {
					hits++
				}
			}
			for _, k := range []int{0, q.Category} {
				share[k] += hits / float64(len(evidence))
				asked[k]++
			}
		}
	}
	for k := range share {
		share[k] /= max(1, asked[k])
	}
	return share, nil
}

// off returns the numbers, each changed at random by up to jitterPart. The seed determines
// the changes.
func off(n embedded.Numbers, seed int) embedded.Numbers {
	rnd := rand.New(rand.NewPCG(uint64(seed), 7)) //nolint:gosec // no secret
	v := reflect.ValueOf(&n).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		f.SetFloat(f.Float() * (1 + jitterPart*(2*rnd.Float64()-1)))
	}
	return n
}

// mean returns the mean of the runs with changed numbers. It calls tell, if that is not nil,
// after each run.
func (m *memories) mean(n embedded.Numbers, tell func(run int, share [5]float64)) (mean [5]float64, err error) {
	for run := 1; run <= jitterRuns; run++ {
		share, err := m.shares(off(n, run))
		if err != nil {
			return mean, err
		}
		if tell != nil {
			tell(run, share)
		}
		for k := range mean {
			mean[k] += share[k] / jitterRuns
		}
	}
	return mean, nil
}

// jittered measures the shares of recall in this process: once with the numbers in use, and
// then several times with all of them changed at random. The mean of those runs is the
// measure of a change, because a number at its peak may only fit these conversations.
func jittered(m *memories) error {
	fmt.Printf("| run | all | multi-hop | temporal | open-domain | single-hop |\n| --- | --- | --- | --- | --- | --- |\n")
	share, err := m.shares(embedded.Fitted)
	if err != nil {
		return err
	}
	printShares("unchanged", share)
	mean, err := m.mean(embedded.Fitted, func(run int, share [5]float64) { printShares(fmt.Sprint("off ", run), share) })
	if err == nil {
		printShares("mean of the changed runs", mean)
	}
	return err
}

// fit tries a larger and a smaller value of each number, and uses it if it improves the mean.
func fit(m *memories) error {
	n := embedded.Fitted
	best, err := m.mean(n, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%.4f unchanged\n", best[0])
	v := reflect.ValueOf(&n).Elem()
	for i := range v.NumField() {
		name, was := v.Type().Field(i).Name, v.Field(i).Float()
		for _, try := range []float64{was * fitStep, was / fitStep} {
			kept := v.Field(i).Float()
			v.Field(i).SetFloat(try)
			mean, err := m.mean(n, nil)
			if err != nil {
				return err
			}
			fmt.Printf("%.4f with %s %.3f\n", mean[0], name, try)
			if mean[0] < best[0]+fitGain {
				v.Field(i).SetFloat(kept)
				continue
			}
			best = mean
			break
		}
	}
	fmt.Printf("%.4f with %+v\n", best[0], n)
	return nil
}

func printShares(name string, share [5]float64) {
	fmt.Printf("| %s | %.4f | %.3f | %.3f | %.3f | %.3f |\n", name, share[0], share[1], share[2], share[3], share[4])
}

// messages returns the messages of the conversation in the form of an import, and their texts
// by ID.
func (c *locomo) messages() (out []graphiti.Row, texts map[string]string, err error) {
	texts = make(map[string]string)
	for _, s := range c.Sessions {
		at, err := time.Parse("3:04 pm on 2 January, 2006", s.Date)
		if err != nil {
			return nil, nil, fmt.Errorf("read a date: %w", err)
		}
		source, _ := json.Marshal(map[string]string{"session": fmt.Sprint(s.Session)})
		for i, t := range s.Turns {
			texts[t.ID] = t.Text
			role := graphiti.RoleAssistant
			if t.Speaker == c.Speaker {
				role = graphiti.RoleUser
			}
			out = append(out, graphiti.Row{Name: fmt.Sprint("m", len(out)), Role: role, Speaker: t.Speaker, Text: t.Text,
				Said: at.Add(time.Duration(i) * time.Minute), Source: string(source)})
		}
	}
	return out, texts, nil
}
