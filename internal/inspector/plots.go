package inspector

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// plot is a bar chart of the week, and the same data as a table.
type plot struct {
	Title string
	Names []string // of the values of a day, which are stacked
	Days  []bars
	Most  int // highest sum of a day
}

// bars are the values of one day.
type bars struct {
	Date, Day string
	Values    []int
}

// weekPlots returns the charts of the week that have a value.
func weekPlots(days []service.Day) (list []plot) {
	for _, p := range []struct {
		title string
		names []string
		of    func(*service.Figures) []int
	}{
		{"Questions answered with memory, by day", []string{"with a block", "without one"}, func(f *service.Figures) []int { return []int{f.Blocks, f.Silent} }},
		{"Characters added to requests, by day", []string{"characters"}, func(f *service.Figures) []int { return []int{f.Chars} }},
		{"Tokens of the model that distils facts, by day", []string{"tokens"}, func(f *service.Figures) []int { return []int{f.Distilled} }},
	} {
		one := plot{Title: p.title, Names: p.names}
		for i := range days {
			at, _ := time.Parse(time.DateOnly, days[i].Date) // the operation has written it
			d, sum := bars{days[i].Date, at.Format("Mon"), p.of(&days[i].Figures)}, 0
			for _, n := range d.Values {
				sum += n
			}
			one.Days, one.Most = append(one.Days, d), max(one.Most, sum)
		}
		if one.Most > 0 {
			list = append(list, one)
		}
	}
	return list
}

// height returns the height of a value in the plot, in its own units.
func (p *plot) height(value int) int {
	if value == 0 {
		return 0
	}
	return max(2, 96*value/p.Most)
}

// below returns the height of the bars of a day up to value n.
func (p *plot) below(d *bars, n int) (top int) {
	for _, v := range d.Values[:n+1] {
		top += p.height(v)
	}
	return min(top, 96)
}
