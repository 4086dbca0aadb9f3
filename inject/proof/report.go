package proof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Report is the state of an experiment, and its result once it is complete.
type Report struct {
	Share   float64        `json:"share"`
	Number  int            `json:"number"`
	Arms    map[string]int `json:"arms"`              // conversations shown, withheld, missing, open (silent for less than an hour), and left out, by reason
	Signals []Signal       `json:"signals,omitempty"` // the first one decides
	Says    string         `json:"says"`
}

// Signal compares the means of a number of each conversation. Low and High bound the difference with
// a confidence of 95 %.
type Signal struct {
	Name       string  `json:"name"`
	Shown      float64 `json:"shown"`
	Withheld   float64 `json:"withheld"`
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
}

const (
	quietAfter = time.Hour // silence that ends a conversation
	noneSeen   = "no difference seen yet"
)

// Report returns the state of the experiment, or nil without one.
func (p *Proof) Report(ctx context.Context) (*Report, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // there is no experiment
	}
	trials, err := p.trials(ctx)
	r := &Report{Share: p.terms.Share, Number: p.terms.Number, Says: noneSeen}
	r.judge(trials)
	return r, err
}

// split returns the eligible trials in the order of their beginnings, and counts the others.
func split(trials []*trial) (eligible []*trial, left map[string]int) {
	left = make(map[string]int)
	for _, t := range trials {
		switch {
		case t.Left != "":
			left[t.Left]++
		case len(t.Lines) > 0: // without lines, there were only rules
			eligible = append(eligible, t)
		}
	}
	slices.SortFunc(eligible, func(a, b *trial) int { return a.Began.Compare(b.Began) })
	return eligible, left
}

func one(is bool) float64 { return map[bool]float64{true: 1}[is] }

func isWithheld(t *trial) bool { return t.Withheld }
func isTold(t *trial) float64  { return one(t.Told) }

// judge counts the trials, and compares the first ones once all of them have ended.
func (r *Report) judge(trials []*trial) {
	all, arms := split(trials)
	all = all[:min(len(all), r.Number)]
	r.Arms, arms["missing"], arms["shown"], arms["withheld"] = arms, r.Number-len(all), 0, 0
	for _, t := range all {
		r.Arms[map[bool]string{false: "shown", true: "withheld"}[t.Withheld]]++
		if time.Since(t.Last) < quietAfter {
			r.Arms["open"]++
		}
	}
	if r.Arms["missing"]+r.Arms["open"] > 0 {
		r.Says += fmt.Sprintf(": %d of %d conversations, which are compared once, at the end", len(all), r.Number)
		return
	}
	asked := slices.DeleteFunc(slices.Clone(trials), func(t *trial) bool { return t.Left != leftAsked || len(t.Lines) == 0 })
	r.Signals = []Signal{
		compare("told again", all, isWithheld, isTold, true),
		compare("told again, conversations that asked for memory included", append(asked, all...), isWithheld, isTold, true),
		compare("corrected", all, isWithheld, func(t *trial) float64 { return one(t.Corrected) }, true),
		compare("turns", all, isWithheld, func(t *trial) float64 { return float64(t.Turns) }, false),
		compare("tool rounds", all, isWithheld, func(t *trial) float64 { return float64(t.Rounds) }, false),
		compare("tokens", all, isWithheld, func(t *trial) float64 { return float64(t.Tokens) }, false),
		compare("told again, both halves with memory", slices.DeleteFunc(slices.Clone(all), isWithheld), func(t *trial) bool { return t.Half }, isTold, true),
	}
	s := &r.Signals[0]
	if s.Low > 0 || s.High < 0 {
		r.Says = "a difference"
	}
	r.Says += fmt.Sprintf(": people told the memory again in %.0f %% of conversations with memory, and in %.0f %% without it (%+.0f points, from %+.0f to %+.0f)", 100*s.Shown, 100*s.Withheld, 100*s.Difference, 100*s.Low, 100*s.High)
}

// arm sums the values of an arm, and those of each person.
type arm struct {
	n, sum, squares float64
	people          map[string][2]float64 // number and sum
}

// compare returns the difference of the arms' means. Conversations of a person may resemble each
// other, so the interval is at least that of people as clusters. For shares, each arm gets a success
// and a failure (Agresti and Caffo).
func compare(name string, trials []*trial, second func(*trial) bool, value func(*trial) float64, share bool) Signal {
	arms := [2]arm{{people: make(map[string][2]float64)}, {people: make(map[string][2]float64)}}
	people := make(map[string]bool)
	for _, t := range trials {
		a, v, who := &arms[int(one(second(t)))], value(t), string(t.Person)
		a.n, a.sum, a.squares, people[who] = a.n+1, a.sum+v, a.squares+v*v, true
		a.people[who] = [2]float64{a.people[who][0] + 1, a.people[who][1] + v}
	}
	s := Signal{Name: name}
	if arms[0].n == 0 || arms[1].n == 0 {
		return s
	}
	s.Shown, s.Withheld = arms[0].sum/arms[0].n, arms[1].sum/arms[1].n
	s.Difference = s.Shown - s.Withheld
	var middles [2]float64
	variance := 0.0
	for i, a := range arms {
		if share {
			a.n, a.sum, a.squares = a.n+2, a.sum+1, a.squares+1
		}
		middles[i] = a.sum / a.n
		variance += max(0, a.squares/a.n-middles[i]*middles[i]) / max(1, a.n-1)
	}
	half := 1.96 * math.Sqrt(variance)
	if g := float64(len(people)); g > 1 {
		sum := 0.0
		for who := range people {
			of0, of1 := arms[0].people[who], arms[1].people[who]
			u := (of0[1]-s.Shown*of0[0])/arms[0].n - (of1[1]-s.Withheld*of1[0])/arms[1].n
			sum += u * u
		}
		half = max(half, student(g-1)*math.Sqrt(sum*g/(g-1)))
	}
	s.Low, s.High = middles[0]-middles[1]-half, middles[0]-middles[1]+half
	return s
}

// student approximates the 97.5 % quantile of Student's distribution (Cornish and Fisher).
func student(freedom float64) float64 {
	return 1.96 + 2.372/freedom + 2.823/(freedom*freedom)
}
