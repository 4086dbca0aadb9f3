package inspector

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// live is the page of current requests, the newest first.
type live struct {
	Requests []requestRow
	Last     int
}

// requestRow is one request.
type requestRow struct {
	graphiti.LoggedRequest
	Parts    [3]int  // percent of its time: memory, provider until the answer begins, answer
	Answer   float64 // milliseconds of the answer
	AnswerAt int
	Bad      bool
	Why      explained
	Talk     string // page of its conversation
}

const (
	liveRows = 100 // rows of the page
	partsBar = 100 // units of the bar
)

func (v *visit) live() error {
	l, err := v.passing(0)
	if err != nil {
		return err
	}
	return v.show("Live", l.main(), liveScripts())
}

// liveRows sends the rows after the newest row of a page, for its script. The header X-Last
// has the number of the last request.
func (v *visit) liveRows() error {
	after, err := strconv.Atoi(v.r.FormValue("after"))
	if err != nil || after < 0 {
		after = 0
	}
	l, err := v.passing(after)
	if err != nil {
		status, f := v.judge(err)
		http.Error(v.w, f.Says, status)
		return nil
	}
	rows, err := fill(l.rows())
	if err != nil {
		return err
	}
	v.w.Header().Set("X-Last", strconv.Itoa(l.Last))
	send(v.w, http.StatusOK, rows)
	return nil
}

func (v *visit) passing(after int) (*live, error) {
	got, err := look(v, service.Requests, func(in *service.RequestsRequest) { in.After, in.Limit = after, liveRows })
	if err != nil {
		return nil, err
	}
	l := &live{Last: got.Last}
	for i := len(got.Requests) - 1; i >= 0; i-- {
		l.Requests = append(l.Requests, v.passed(&got.Requests[i]))
	}
	return l, nil
}

func (v *visit) passed(r *graphiti.LoggedRequest) requestRow {
	p := requestRow{LoggedRequest: *r, Bad: r.Status == 0 || r.Status >= http.StatusBadRequest}
	p.Answer = max(0, r.TotalMs-r.MemoryMs-r.UpstreamMs)
	if whole := r.MemoryMs + r.UpstreamMs + p.Answer; whole > 0 {
		p.Parts[0] = int(math.Ceil(partsBar * r.MemoryMs / whole))
		p.Parts[1] = min(partsBar-p.Parts[0], int(math.Round(partsBar*r.UpstreamMs/whole)))
		p.Parts[2] = partsBar - p.Parts[0] - p.Parts[1]
		p.AnswerAt = p.Parts[0] + p.Parts[1]
	}
	if r.Reason != "" {
		p.Why = reasonOf(r.Reason)
	}
	if r.Conversation != "" && !strings.HasPrefix(r.Person, graphiti.HashedPerson) {
		p.Talk = whose{User: r.Person}.conversationAt(r.Conversation, r.Turn)
	}
	return p
}
