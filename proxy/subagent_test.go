package proxy

import (
	"bytes"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/chat"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// TestTaskBeforeItsCallIsRead checks that a task is recognized even if its request arrives
// before the answer with the call was read, and its turn ends after the call was closed.
func TestTaskBeforeItsCallIsRead(t *testing.T) {
	const task = "please look it up in all of the files"
	person, now := dialect.Root("", "user:o"), time.Now()
	for name, tc := range map[string]struct {
		asked, came time.Duration // age of the call's request and of the task's
		place       string        // of the task
		caller      string
		kept        bool
	}{
		"while the call is open":             {asked: 2 * time.Second, came: time.Second},
		"before the call was asked for":      {asked: time.Second, came: 2 * time.Second, kept: true},
		"long after it":                      {asked: 2 * time.Hour, came: time.Second, kept: true},
		"after the conversation went on":     {asked: 2 * time.Second, came: -time.Minute, kept: true},
		"in another place":                   {asked: 2 * time.Second, came: time.Second, place: "/b", kept: true},
		"where the caller is another person": {asked: 2 * time.Second, came: time.Second, caller: "user:p", kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &steps{}
			e := ends(t, s, &bytes.Buffer{})
			defer s.pending.Close()
			e.s.decider = idle()
			asker := pendingTurn{s: e.s, at: where{person: person, place: dialect.Place{Directory: "/a"}}, end: person}
			asker.turn.Said = now.Add(-tc.asked)
			calls := &dialect.Calls{}
			calls.Add(0, `{"task":"`+task+`"}`)
			asker.openCalls(&dialect.Answer{Calls: calls})
			if tc.asked > openFor { // the call was read equally long ago
				e.s.memo.Update(textKey(person, []byte(task)), func(was any) (any, int) {
					o := was.(callText)
					o.to = o.from.Add(openFor)
					return o, 0
				})
			}
			goesOn(t, e.s.decider, person)
			caller := person
			if tc.caller != "" {
				caller = dialect.Root("", tc.caller)
			}
			e.at = where{person: caller, place: dialect.Place{Directory: "/a"}}
			if tc.place != "" {
				e.at.place.Directory = tc.place
			}
			e.task, e.turn.Said = firstMessage{texts: []memo.Key{textKey(caller, []byte(task))}, at: caller}, now.Add(-tc.came)
			e.answered(dialect.Answer{Text: "It is done.", End: dialect.EndStop}, true)
			if kept := len(s.kept) > 0; kept != tc.kept {
				t.Errorf("kept: %v, want %v", kept, tc.kept)
			}
		})
	}
}

// goesOn closes the open calls of asked, like the next request of its conversation.
func goesOn(t *testing.T, s *decider, asked dialect.Fingerprint) {
	t.Helper()
	var c dialect.Conversation
	if !(chat.Dialect{}).Parse([]byte(`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null},{"role":"user","content":"b"}]}`), &c) {
		t.Fatal("the request is not understood")
	}
	s.closeCalls(chat.Dialect{}, &c, []dialect.Fingerprint{asked, asked, asked}, &where{})
}

// TestUsesOfATask checks that parallel subagents and retries with the same text belong to
// the call, and that other conversations do not. The text of a background call belongs to a
// person after the subagent's answer.
func TestUsesOfATask(t *testing.T) {
	const task = "say hi"
	person := dialect.Root("", "user:o")
	for name, tc := range map[string]struct {
		background bool
		again      bool // after the subagent's answer
	}{
		"the caller waits":  {false, true},
		"in the background": {true, false},
	} {
		s := &steps{}
		e := ends(t, s, &bytes.Buffer{})
		defer s.pending.Close()
		e.s.decider = idle()
		asker := pendingTurn{s: e.s, at: where{person: person}, end: person, who: graphiti.Who{Session: "session:root"}}
		asker.turn.Said = time.Now().Add(-time.Second)
		calls := &dialect.Calls{}
		calls.Add(0, `{"task":"`+task+`"}`)
		calls.Add(1, `{"task":"`+task+`"}`)
		asker.openCalls(&dialect.Answer{Calls: calls})
		keys := []memo.Key{textKey(person, []byte(task))}
		one, other := person.Link(dialect.RoleUser, []byte(task)), person.Link(dialect.RoleUser, []byte("before"))
		is := func(conversation dialect.Fingerprint) bool {
			of, is := e.s.isTask(keys, conversation, dialect.Place{}, time.Now())
			if is && of.session != "session:root" {
				t.Errorf("%s: got the parent %q, want session:root", name, of.session)
			}
			return is
		}
		for _, c := range []dialect.Fingerprint{one, one, other} {
			if got := is(c); got != (c == one) {
				t.Errorf("%s: got %v, want both subagents with the text, and no other conversation", name, got)
			}
		}
		if tc.background {
			e.s.changeText(keys[0], func(c *callText) { c.launched = true })
		}
		child := pendingTurn{s: e.s, at: where{person: person}}
		child.turn.User = task
		child.endTask()
		if got := is(one); got != tc.again {
			t.Errorf("%s: after the answer: got %v, want %v", name, got, tc.again)
		}
	}
}
