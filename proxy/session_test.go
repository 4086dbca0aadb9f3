package proxy

import (
	"context"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
)

// mapSessions stores sessions in maps.
type mapSessions struct {
	noService
	pending, known map[[16]byte]string
}

func (m mapSessions) Pending(_ context.Context, fingerprints ...[16]byte) (string, bool) {
	return first(m.pending, fingerprints)
}
func (m mapSessions) SetPending(_ context.Context, f [16]byte, session string) {
	m.pending[f] = session
}
func (m mapSessions) EndPending(f [16]byte)               { delete(m.pending, f) }
func (m mapSessions) PutAsync(f [16]byte, session string) { m.known[f] = session }
func (m mapSessions) Find(_ context.Context, fingerprints [][16]byte) (string, bool, error) {
	session, ok := first(m.known, fingerprints)
	return session, ok, nil
}

func first(of map[[16]byte]string, fingerprints [][16]byte) (string, bool) {
	for _, f := range fingerprints {
		if session, ok := of[f]; ok {
			return session, true
		}
	}
	return "", false
}

// TestSessionOfUnseenHistory checks that a conversation belongs to a session if it contains
// the messages of the session's last turn. Neither a client's example messages nor the tool
// rounds of another conversation suffice.
func TestSessionOfUnseenHistory(t *testing.T) {
	const (
		examples = `{"role":"user","content":"Make the greeting more casual."},{"role":"assistant","content":"Ok."},`
		one      = `{"role":"user","content":"Where does the database listen?"}`
		other    = `{"role":"user","content":"What is the port of the cache?"}`
		round    = `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}`
		answer   = `,{"role":"assistant","content":"It listens on port 6543."},`
	)
	for _, tc := range []struct {
		name          string
		first, second string
		answered      bool // the first request was answered before the second
		same          bool
	}{
		{"two runs with the same examples", examples + one, examples + other, true, false},
		{"a retry of the same run", examples + one, examples + one, false, true},
		{"a retry of the same run after its answer", examples + one, examples + one, true, true},
		{"two conversations with the same prefill", one + `,{"role":"assistant","content":"It"}`, one + `,{"role":"assistant","content":"It"}`, true, false},
		{"the next turn of the run", examples + one, examples + one + answer + other, true, true},
		{"a conversation that begins like unseen rounds", one + round, one, false, false},
		{"a repeat of unseen rounds", one + round, one + round, false, true},
		{"the next turn with another answer", examples + one, examples + one + `,{"role":"assistant","content":"Port 6543."},` + other, true, true},
		{"a new conversation with the same message", one, one, true, false},
		{"the next of the unseen rounds", one + round, one + round + round, false, true},
		{"a round of a conversation that was seen", one, one + round, false, true},
	} {
		s := idle()
		known, at := mapSessions{pending: make(map[[16]byte]string), known: make(map[[16]byte]string)}, &where{}
		var sessions [2]string
		for n, messages := range []string{tc.first, tc.second} {
			var c dialect.Conversation
			if !(chat.Dialect{}).Parse([]byte(`{"messages":[`+messages+`]}`), &c) {
				t.Fatalf("%s: body %d is not valid", tc.name, n)
			}
			chain := c.Chain(dialect.Root("", "p"), nil)
			sessions[n], _ = s.spoken(t.Context(), known, &c, chain, at)
			if tc.answered && n == 0 {
				known.EndPending(chain[c.Last])
				known.PutAsync(askedIn(chain[c.Last]), sessions[0])
				known.PutAsync(chain[len(chain)-1].Link(dialect.RoleAssistant, []byte("It listens on port 6543.")), sessions[0])
			}
		}
		if got := sessions[0] == sessions[1]; got != tc.same {
			t.Errorf("%s: same session = %v, want %v", tc.name, got, tc.same)
		}
	}
}
