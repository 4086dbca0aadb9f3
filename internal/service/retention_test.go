package service_test

import (
	"errors"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestHold checks that a forget of a person on hold is refused without an effect, for each
// selection, and works after the hold.
func TestHold(t *testing.T) {
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	defer m.Close()
	m.Say(t, servicetest.Owner, "s1", "", "The hamster Bolt lives in Porto.")
	m.Settle(t)
	bounds := capture.Bounds{MaxChars: 8000, Timeout: 10 * time.Second, StallAfter: time.Minute}
	messages := func() []service.Record { return run(t, m, service.Show, service.ShowRequest{Last: 10}).Messages }
	id, group := messages()[0].ID, run(t, m, service.Groups, service.Selector{User: "me"}).Groups[0].Group
	requests := map[string]service.Selector{"a memory": {Group: group}, "a conversation": {Group: group, Session: "s1", User: "me"}, "a message": {Message: id}}
	hold := bounds
	hold.Retain.Of = map[string]time.Duration{servicetest.Owner: ledger.Hold}
	m.Pipeline.Set(hold, false)
	for name, s := range requests {
		_, err := m.Memory.Forget(t.Context(), &service.ForgetRequest{Selector: s})
		if forbidden := (service.ForbiddenError{}); !errors.As(err, &forbidden) || len(messages()) != 2 {
			t.Errorf("%s: %v, %d messages", name, err, len(messages()))
		}
	}
	m.Pipeline.Set(bounds, false)
	must(t, helptest.ErrorOf(m.Memory.Forget(t.Context(), &service.ForgetRequest{Selector: service.Selector{Group: group}})))
}
