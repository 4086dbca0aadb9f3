package inspector

import (
	"errors"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/health"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// deliveryPage is the page of the turns that wait for a remote memory.
type deliveryPage struct {
	Off    bool
	Remote bool
	Status health.MemoryStatus
	Queue  capture.QueueStatus
	Needs  []need
	Dead   []dead
	All    int
	Text   bool // show the text of the turns
	Oldest string
}

type dead struct {
	ledger.Item
	Since           string
	Asked, Answered said
}

const deadAtOnce = 100

func (v *visit) delivery() error {
	st, err := look(v, service.Status, func(*service.StatusRequest) {})
	if err != nil {
		return err
	}
	d := deliveryPage{Off: st.Memory.State == health.StateOff, Remote: st.Memory.Backend != "embedded" && st.Memory.State != health.StateOff, Status: st.Memory, Queue: st.Queue, Text: v.r.FormValue("text") == "1"}
	d.Needs = needs(&health.Status{Memory: st.Memory})
	d.Oldest = dated(st.Queue.Oldest)
	if v.p.o.Host.Now().Memory != nil && st.Queue.Dead > 0 {
		got, err := look(v, service.Turns, func(in *service.TurnsRequest) {
			in.Condition, in.Limit, in.Text = ledger.Dead, deadAtOnce, d.Text
		})
		if err != nil {
			return err
		}
		d.All = got.All
		for _, t := range got.Turns {
			d.Dead = append(d.Dead, dead{t, t.Since.UTC().Format(time.RFC3339), v.said(t.User, ""), v.said(t.Assistant, "")})
		}
	}
	return v.show("Delivery", d.main())
}

// chosen returns the dead letters that a form names.
func (v *visit) chosen() (s service.Selection, err error) {
	_ = v.r.ParseForm() // an unreadable form chooses no turn
	if v.r.FormValue("all") == "1" {
		return service.Selection{All: true}, nil
	}
	for _, said := range v.r.PostForm["number"] {
		n, err := strconv.ParseInt(said, 10, 64)
		if err != nil {
			return s, failed{service.OfInput, errors.New("a number of a turn cannot be read")}
		}
		s.Numbers = append(s.Numbers, n)
	}
	if len(s.Numbers) == 0 {
		return s, errNothing
	}
	return s, nil
}

func (v *visit) retry() error {
	s, err := v.chosen()
	if err != nil {
		return err
	}
	return act(v, service.Retry, "/delivery", "retried", func(in *service.Selection) { *in = s })
}

func (v *visit) drop() error {
	s, err := v.chosen()
	if err != nil {
		return err
	}
	return act(v, service.Drop, "/delivery", "dropped", func(in *service.Selection) { *in = s })
}
