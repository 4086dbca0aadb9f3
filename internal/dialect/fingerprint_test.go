package dialect_test

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// colliding returns two encoded texts with the same xxhash: the word that is hashed after a
// changed word undoes the change.
func colliding(t *testing.T) (a, b string) {
	t.Helper()
	const p1, p2 = 11400714785074694791, 14029467366897019727
	var start, inverse uint64 = 0, 1 // inverse of p2, by Newton's method
	for _, p := range []uint64{p1, p2} {
		start += p
	}
	for range 6 {
		inverse *= 2 - p2*inverse
	}
	round := func(acc, word uint64) uint64 { return bits.RotateLeft64(acc+word*p2, 31) * p1 }
	word := func(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s)) }
	middle := `\n` + strings.Repeat("m", 22)
	end := strings.Repeat("e", 300)
	for i := range 10_000 {
		one := fmt.Sprintf("w%07d", i)
		two := word("secondly") + (round(start, word("firstly "))-round(start, word(one)))*inverse
		other := string(binary.LittleEndian.AppendUint64(nil, two))
		if strings.ContainsFunc(other, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
			continue
		}
		a, b = "firstly "+middle+"secondly"+end, one+middle+other+end
		if xxhash.Sum64String(a) != xxhash.Sum64String(b) {
			t.Fatal("they do not collide")
		}
		return a, b
	}
	t.Fatal("none was found")
	return "", ""
}

// TestRememberedHashIsNoOthers checks that a forged text with the same hash does not change
// the fingerprint of another person's text.
func TestRememberedHashIsNoOthers(t *testing.T) {
	a, b := colliding(t)
	last := func(h *dialect.Hasher, text string) dialect.Fingerprint {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(`{"messages":[{"role":"user","content":"`+text+`"}]}`), &c) {
			t.Fatalf("a message with %q is not understood", text)
		}
		return h.Chain(&c, dialect.Fingerprint{}, nil)[0]
	}
	h, fresh := dialect.NewHasher(), dialect.NewHasher()
	last(h, b)
	if last(h, a) != last(fresh, a) {
		t.Error("what another person said changes a fingerprint")
	}
}

// TestFingerprintOfOtherForms checks that a text has the same fingerprint with other line ends
// and with composed letters.
func TestFingerprintOfOtherForms(t *testing.T) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"My cafe\u0301 is\r\nthe Heron."},{"role":"assistant","content":"Caf\u00e9?\r\nYes."}]}`,
		"{\"messages\":[{\"role\":\"user\",\"content\":\"My cafe\u0301 is\\nthe Heron.\"},{\"role\":\"assistant\",\"content\":\"Cafe\u0301?\\nYes.\"}]}",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"My caf\u00e9 is\nthe Heron."}]},{"role":"assistant","content":"Caf\u00e9?\nYes."}]}`,
	} {
		var c dialect.Conversation
		if !(chat.Dialect{}).Parse([]byte(body), &c) {
			t.Fatalf("not understood: %s", body)
		}
		chain := hasher.Chain(&c, dialect.Root("", "p"), nil)
		if want := dialect.Root("", "p").Link(dialect.RoleUser, []byte("My café is\nthe Heron.")).Link(dialect.RoleAssistant, []byte("Café?\nYes.")); chain[1] != want {
			t.Errorf("%s: another fingerprint", body)
		}
	}
}
