package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/internal/servicetest"
)

// TestReceipt checks that a deletion of a group or a conversation has a signed receipt with
// counts and without texts, and that no change of it passes.
func TestReceipt(t *testing.T) {
	t.Parallel()
	m := servicetest.Open(t, t.TempDir(), servicetest.Options{})
	m.Say(t, "", "s1", "", "My cat is called Miso.")
	m.Say(t, "", "conversation-two", "", "My dog is called Rex.")
	m.Settle(t)
	one := forgetSession(t, m, "s1")
	if part := one[len(one)-1].Receipt; part == nil || part.Messages != 2 || part.Session == "" {
		t.Fatalf("conversation: %+v", one)
	}
	all := run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Group: servicetest.OwnersGroup}})
	r := all.Receipt
	if r == nil || r.Messages != 2 || r.Owner != servicetest.Owner || r.Graphiti != "not connected" || r.Session != "" {
		t.Fatalf("group: %+v", r)
	}
	body, err := json.Marshal(r)
	if err != nil || strings.Contains(string(body), "Rex") || strings.Contains(string(body), "conversation-two") {
		t.Errorf("%s, %v", body, err)
	}
	must(t, r.Check(r.Key))
	other := service.ReceiptKey([]byte("another data directory"))
	if other == r.Key || r.Check(other) == nil || r.Check("") == nil || r.Check("bm8=") == nil {
		t.Error("another key passes")
	}
	for name, change := range map[string]func(r *service.Receipt){
		"time":      func(r *service.Receipt) { r.Time = "2020-01-01T00:00:00.000Z" },
		"owner":     func(r *service.Receipt) { r.Owner = "user:ann" },
		"group":     func(r *service.Receipt) { r.Group = "g" },
		"session":   func(r *service.Receipt) { r.Session = "s" },
		"messages":  func(r *service.Receipt) { r.Messages++ },
		"queue":     func(r *service.Receipt) { r.Queue++ },
		"blocks":    func(r *service.Receipt) { r.Blocks++ },
		"graphiti":  func(r *service.Receipt) { r.Graphiti = "deleted" },
		"backups":   func(r *service.Receipt) { r.Backups = "deleted" },
		"version":   func(r *service.Receipt) { r.Version++ },
		"key":       func(r *service.Receipt) { r.Key = other },
		"signature": func(r *service.Receipt) { r.Signature = one[0].Receipt.Signature },
		"none":      func(r *service.Receipt) { r.Signature = "" },
	} {
		forged := *r
		change(&forged)
		if forged.Check(r.Key) == nil {
			t.Errorf("%s: a changed receipt passes", name)
		}
	}
	m.Say(t, "", "s3", "", "My bird is called Bo.")
	m.Settle(t)
	shown := run(t, m, service.Show, service.ShowRequest{Last: 5})
	if f := run(t, m, service.Forget, service.ForgetRequest{Selector: service.Selector{Message: shown.Messages[0].ID}}); f.Receipt != nil {
		t.Errorf("message: %+v", f.Receipt)
	}
}
