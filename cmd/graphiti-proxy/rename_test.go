package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// registered writes a registry of people, each given as an id and further fields in YAML.
func registered(t *testing.T, path string, people ...string) {
	t.Helper()
	text := "users:\n"
	for _, p := range people {
		text += "- {" + p + "}\n"
	}
	writeFile(t, path, text)
}

// keyOf returns the field of a person that gives them a key.
func keyOf(key string) string { return fmt.Sprintf("keys: [\"sha256:%s\"]", sha(key)) }

// unconfirmedNow returns the ids of the people that the status lists as unconfirmed.
func unconfirmedNow(w *world) string {
	var ids []string
	for _, u := range w.app.status(w.t.Context(), false).Unconfirmed {
		ids = append(ids, u.ID)
	}
	return strings.Join(ids, " ")
}

// TestAccept checks that the operator can assign a memory to a person, that a memory with
// stored turns needs --yes, and that a forgotten memory is empty for its next person.
func TestAccept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.yaml")
	registered(t, file, "id: josh, "+keyOf("sk-josh"))
	w := start(t, t.TempDir(), map[string]string{"identity.mode": "multi", "identity.users_file": file})
	w.say(fact, "Authorization", "Bearer sk-josh")
	w.delivered(1)
	change := func(people ...string) {
		t.Helper()
		registered(t, file, people...)
		must(t, helptest.ErrorOf(w.app.reload(w.app.cfg)))
	}
	knows := func(text, key string) bool {
		_, _, saw := w.say(question+" "+text, "Authorization", "Bearer "+key)
		return strings.Contains(saw, "Miso")
	}
	accept := func(id string, more ...string) error {
		_, err := w.cli(append([]string{"registry", "accept", id}, more...)...)
		return err
	}

	change("id: josh, " + keyOf("sk-other"))
	if err := accept("josh"); err == nil || !strings.Contains(err.Error(), "memory forget --user josh") {
		t.Errorf("accept josh while something is held: %v, want an error with the remedy", err)
	}
	if unconfirmedNow(w) != "josh" || knows("Refused.", "sk-other") {
		t.Errorf("after a refusal in doubt is %q, want josh, and no fact for the new key", unconfirmedNow(w))
	}
	if err := accept("josh", "--yes"); err != nil || unconfirmedNow(w) != "" || !knows("The same person.", "sk-other") {
		t.Errorf("accept josh --yes: %v, in doubt %q; want no error, nobody, and the fact for the new key", err, unconfirmedNow(w))
	}
	change("id: josh, " + keyOf("sk-josh"))
	if unconfirmedNow(w) != "josh" {
		t.Errorf("with the key that was replaced, in doubt is %q, want josh", unconfirmedNow(w))
	}
	must(t, helptest.ErrorOf(w.cli("memory", "forget", "--user", "josh", "--yes")))
	if err := accept("josh"); err != nil || unconfirmedNow(w) != "" || knows("Somebody else.", "sk-josh") {
		t.Errorf("accept josh after forget: %v, in doubt %q; want no error, nobody, and no fact", err, unconfirmedNow(w))
	}
	change("id: joshua, " + keyOf("sk-josh"))
	if err := accept("joshua"); err != nil || unconfirmedNow(w) != "" {
		t.Errorf("accept joshua, with a known key: %v, in doubt %q; want no error, nobody", err, unconfirmedNow(w))
	}
	change("id: josh, "+keyOf("sk-third"), "id: joshua, "+keyOf("sk-josh"))
	if got := unconfirmedNow(w); got != "josh" {
		t.Errorf("an id that was free and is given away: in doubt is %q, want josh", got)
	}
	if err := accept("nobody"); err == nil || !strings.Contains(err.Error(), "no person of identity.users_file") {
		t.Errorf("accept nobody: %v, want an error that names identity.users_file", err)
	}
	if !strings.Contains(w.log.String(), `what="accept a person" who="user=josh"`) {
		t.Errorf("the log has no audit line of the acceptance:\n%s", w.log)
	}
}
