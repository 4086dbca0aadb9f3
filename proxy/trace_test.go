package proxy

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// TestWhereNobodyLooksATraceTakesNothing: no allocation in all that a request
// asks of it.
func TestWhereNobodyLooksATraceTakesNothing(t *testing.T) {
	s := &Server{}
	c := &call{request: request{head: &fasthttp.RequestHeader{}}}
	d := &decision{plan: inject.Plan{Searched: make([]inject.Searched, 3)}}
	n := testing.AllocsPerRun(100, func() {
		c.trace = s.startTrace(c, time.Time{})
		c.trace.decided(d)
		c.trace.asks(c)
		told := c.trace.awaitAnswer()
		if c.trace.parent() != "" {
			t.Error("a turn of nobody's trace")
		}
		c.trace.unread()
		told(dialect.Answer{})
		c.trace.end(200)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
