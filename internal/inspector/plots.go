package inspector

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// plot is a bar chart of the week, and the same data as a table.
type plot struct {
	Title string
	Says  string // description for screen readers
	Names []string
	Days  []bars
	Most  string // value of the highest bar
	Empty bool
}

// bars are the stacked bars of one day.
type bars struct {
	Date, Day string
	X         int
	Middle    int
	Bars      []bar
	Values    []string
}

type bar struct {
	Class         string
	X, Top        int
	Width, Height int
	Title         string
}

// The size of a plot, in its own units.
const (
	plotStep   = 40
	plotWidth  = 26
	plotHeight = 96
	plotTop    = 14 // room above the bars for the highest value
)

// series is one figure of each day in a plot.
type series struct {
	name string
	of   func(*service.Figures) int
}

// weekPlots draws the week.
func weekPlots(days []service.Day) []plot {
	if len(days) == 0 {
		return nil
	}
	list := []plot{
		drawn("Turns by day", days, series{"with a block", func(f *service.Figures) int { return f.Blocks }}, series{"without one", func(f *service.Figures) int { return f.Silent }}),
		drawn("Turns kept by day", days, series{"turns kept", func(f *service.Figures) int { return f.Turns }}),
		drawn("Characters of memory by day", days, series{"characters", func(f *service.Figures) int { return f.Chars }}),
		drawn("Tokens of memory by day, about", days, series{"tokens", func(f *service.Figures) int { return f.Tokens }}),
		drawn("Tokens from prompt caches by day", days, series{"tokens", func(f *service.Figures) int { return f.Cached }}),
		drawn("Milliseconds waited by day", days, series{"milliseconds", func(f *service.Figures) int { return int(f.WaitedMs) }}),
	}
	filled := list[:0]
	for _, p := range list {
		if !p.Empty {
			filled = append(filled, p)
		}
	}
	return filled
}

// drawn returns one plot, with the series stacked.
func drawn(title string, days []service.Day, all ...series) plot {
	p := plot{Title: title}
	most := 0
	for i := range days {
		sum := 0
		for _, s := range all {
			sum += s.of(&days[i].Figures)
		}
		most = max(most, sum)
	}
	for _, s := range all {
		p.Names = append(p.Names, s.name)
	}
	p.Most, p.Empty = grouped(most), most == 0
	for i := range days {
		d := bars{Date: days[i].Date, X: i * plotStep, Middle: i*plotStep + plotStep/2}
		if t, err := time.Parse(time.DateOnly, d.Date); err == nil {
			d.Day = t.Format("Mon")
		}
		top := plotHeight
		for n, s := range all {
			value := s.of(&days[i].Figures)
			d.Values = append(d.Values, grouped(value))
			height := value * plotHeight / max(most, 1)
			if value > 0 {
				height = max(height, 2)
			}
			top -= height
			d.Bars = append(d.Bars, bar{Class: []string{"bar", "bar quiet"}[n], X: d.X + (plotStep-plotWidth)/2, Top: plotTop + max(top, 0), Width: plotWidth, Height: height,
				Title: d.Date + ": " + grouped(value) + " " + s.name})
		}
		p.Days = append(p.Days, d)
	}
	p.Says = title + ", from " + days[0].Date + " to " + days[len(days)-1].Date + "; the maximum is " + p.Most + "."
	return p
}
