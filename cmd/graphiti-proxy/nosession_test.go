package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestConversationWithoutAnID is shown and forgotten by the id that memory list prints,
// and its page has a way to forget it. Another conversation stays.
func TestConversationWithoutAnID(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	w.say("My otter is called Lockless.")
	w.say("My heron is called Greyback.")
	w.delivered(2)
	var all service.Catalog
	out, err := w.cli("memory", "list", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	if err != nil || len(all.Conversations) != 2 {
		t.Fatalf("memory list --json: %s, %v; want two conversations", out, err)
	}
	hash := ""
	for _, c := range all.Conversations {
		if strings.Contains(c.Begins, "otter") {
			hash = c.Hash
		}
	}
	if out, err = w.cli("memory", "list"); err != nil || !strings.Contains(out, hash) {
		t.Errorf("memory list: %s, %v; want the id %s", out, err, hash)
	}
	if page := w.get("/conversation/" + hash); !strings.Contains(page, `/memory/forget?session=`+hash) {
		t.Errorf("the page of the conversation has no link to forget it:\n%s", page)
	}
	if page := w.get("/memory/forget?session=" + hash); !strings.Contains(page, "forget this conversation") || strings.Contains(page, "Nothing") {
		t.Errorf("the page that forgets it:\n%s", page)
	}
	if out, err = w.cli("memory", "show", "--session", hash); err != nil || !strings.Contains(out, "Lockless") || strings.Contains(out, "Greyback") {
		t.Errorf("memory show --session %s: %s, %v; want this conversation alone", hash, out, err)
	}
	if out, err = w.cli("memory", "forget", "--session", hash, "--yes"); err != nil || !strings.HasPrefix(out, "the session is forgotten in ") {
		t.Errorf("memory forget --session %s: %s, %v; want that it is forgotten", hash, out, err)
	}
	if out, err = w.cli("memory", "show"); err != nil || strings.Contains(out, "Lockless") || !strings.Contains(out, "Greyback") {
		t.Errorf("memory show: %s, %v; want the other conversation alone", out, err)
	}
}
