package inspector

import (
	"cmp"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// timeline is the page of the newest messages in one memory.
type timeline struct {
	*about
	Lines standings
	Held  []service.HeldMessage
	Days  []day
	Until string // the day to jump to
	Pager pager
}

// day is one day of messages, the newest first.
type day struct {
	Date     string
	Messages []rowView
}

func (v *visit) timeline() error {
	a, err := v.meant("timeline")
	if err != nil {
		return err
	}
	before := cmp.Or(v.r.FormValue("before"), v.moment(v.r.FormValue("until"), true))
	got, err := look(v, service.Show, func(in *service.ShowRequest) { in.Group, in.Last, in.Before = a.Group, rowsAtOnce, before })
	if err != nil {
		return err
	}
	t := timeline{about: a, Until: v.r.FormValue("until")}
	if t.Lines, err = v.standings(a); err != nil {
		return err
	}
	slices.Reverse(got.Messages) // start with the newest turn, and in it with the question
	for i := 1; i < len(got.Messages); i++ {
		if m := got.Messages; m[i].Role == "user" && m[i-1].Role == "assistant" && ledger.SessionOf(m[i].Source) == ledger.SessionOf(m[i-1].Source) {
			m[i], m[i-1] = m[i-1], m[i]
		}
	}
	for i := range got.Messages {
		r := &got.Messages[i]
		one := v.spoken(r, a.Timeline())
		if hash := ledger.SessionOf(r.Source); hash != "" {
			one.Source = v.whose().conversationAt(hash, "")
		}
		at, _ := time.Parse(time.RFC3339, r.Time) // Show has written it
		date := at.In(v.zone()).Format(time.DateOnly)
		if len(t.Days) == 0 || t.Days[len(t.Days)-1].Date != date {
			t.Days = append(t.Days, day{Date: date})
		}
		d := &t.Days[len(t.Days)-1]
		d.Messages = append(d.Messages, one)
	}
	if t.Held = got.Held; before != "" {
		t.Pager.Newer, t.Held = a.Timeline(), nil
	}
	if got.Earlier != "" {
		t.Pager.Older = a.at("/memory/show", "group", a.Group, "before", got.Earlier)
	}
	return v.show(a.title(), t.main())
}

// settleHeld stores or deletes a held message, as its form says.
func (v *visit) settleHeld() error {
	ids := []string{v.r.FormValue("id")}
	keep := v.r.FormValue("do") == "keep"
	return act(v, service.SettleHeld, v.backToMemory(), map[bool]string{true: "held-kept", false: "held-dropped"}[keep], func(in *service.HeldRequest) {
		if in.Group = v.r.FormValue("group"); keep {
			in.Keep = ids
		} else {
			in.Drop = ids
		}
	})
}
