package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/postgres/postgrestest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

// replicas starts n proxies that share a database.
func replicas(t *testing.T, n int, model *proxytest.Provider, database string, more ...string) []*process {
	t.Helper()
	list := make([]*process, n)
	for i := range list {
		p := &process{t: t, args: []string{"serve"}}
		for _, set := range append([]string{
			"listen=127.0.0.1:0", "admin.listen=127.0.0.1:0", "data_dir=" + t.TempDir(), "upstream.openai=" + model.URL(),
			"identity.owner=user:josh", "identity.group_ids=raw", "log.level=error",
			"state.backend=postgres", "state.postgres_url=" + database,
		}, more...) {
			p.args = append(p.args, "--set", set)
		}
		p.start()
		t.Cleanup(p.kill)
		list[i] = p
	}
	return list
}

// histories records the messages that the model received, by conversation, turn and
// attempt.
type histories struct {
	mu    sync.Mutex
	sent  map[[2]int][][]string
	moved []string // turns that did not begin with the messages of the turn before
}

// spoken returns the text of a message without the memory block.
func spoken(c proxytest.Input, i int) string {
	text := c.Messages[i].Text
	if _, after, ok := strings.Cut(text, "</graphiti_memory>\n\n"); ok {
		return after
	}
	return text
}

// note records a request, and returns its last message without the memory block.
func (h *histories) note(c proxytest.Input) (said string) {
	said = spoken(c, len(c.Messages)-1)
	var n, i int
	if _, err := fmt.Sscanf(said, "conversation %d says %d", &n, &i); err != nil {
		return said
	}
	var texts []string
	for _, m := range c.Messages {
		texts = append(texts, m.Text)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[[2]int{n, i}] = append(h.sent[[2]int{n, i}], texts)
	before, ok := h.sent[[2]int{n, i - 1}]
	if ok && !slices.ContainsFunc(before, func(b []string) bool { return len(b) < len(texts) && slices.Equal(b, texts[:len(b)]) }) {
		what := said
		for k, b := 0, before[len(before)-1]; k < min(len(b), len(texts)); k++ {
			if b[k] != texts[k] {
				what = fmt.Sprintf("%s: message %d, %d attempts before, was %.30q, is %.30q", said, k, len(before), b[k], texts[k])
				break
			}
		}
		h.moved = append(h.moved, what)
	}
	return said
}

const (
	// mayRepeat is the number of messages that may not be stored once in each group if Postgres is busy.
	mayRepeat = 1

	// typing is the time between an answer and the next message: in a session with pauses, a message
	// that follows sooner may be a program's, and is held.
	typing = 350 * time.Millisecond

	// mayMove is the percentage of turns that may lack a known block: a busy Postgres may answer a
	// replica after recall.timeout, and a request does not wait longer.
	mayMove = 2
)

// TestReplicasActAsOne checks that three replicas store each turn once and never change the
// beginning of a conversation. Turns go to random replicas while replicas are killed, and while
// Postgres is killed or hangs.
func TestReplicasActAsOne(t *testing.T) {
	t.Parallel()
	conversations, length := 16, 10
	if os.Getenv("LONG_TESTS") != "" {
		conversations, length = 50, 20
	}
	model := startModel(t)
	seen := histories{sent: make(map[[2]int][][]string)}
	model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		return proxytest.Reply{Text: fmt.Sprintf("answer to %s in what began with %s", seen.note(c), spoken(c, 0))} // of no other conversation
	})
	server := postgrestest.Start(t)
	database := server.Database(t)
	all := replicas(t, 3, model, database, "recall.timeout=2s")

	var answered, repeated atomic.Int64
	said := make([][]map[string]string, conversations)
	say := func(n int, text string) {
		session := ""
		if n%2 == 0 {
			session = fmt.Sprint("s", n)
		}
		time.Sleep(typing)
		said[n] = append(said[n], map[string]string{"role": "user", "content": text})
		for {
			answer, err := all[rand.IntN(len(all))].ask(session, said[n])
			if err == nil {
				said[n] = append(said[n], map[string]string{"role": "assistant", "content": answer})
				return
			}
			repeated.Add(1)
			time.Sleep(20 * time.Millisecond)
		}
	}
	// Blocks answer these questions.
	told := [][2]string{
		{"The staging database listens on port 6543.", "Which port does the staging database listen on?"},
		{"Rosa Delgado maintains the billing service.", "Who maintains the billing service?"},
		{"Our deploys to production happen on Thursdays at noon.", "When do our deploys to production happen?"},
	}
	for _, one := range told {
		if _, err := all[0].ask("", []map[string]string{{"role": "user", "content": one[0]}}); err != nil {
			t.Fatal(err)
		}
	}
	const kept = "FROM graphiti_proxy.messages WHERE role = 'user'"
	waitUntil(t, "the answers to be stored", func() bool {
		return postgrestest.Count(t, database, "SELECT count(DISTINCT content) "+kept) >= len(told)
	})
	talk := func(n, i int) {
		if i%6 == 3 {
			say(n, told[i/6%len(told)][1])
		}
		say(n, fmt.Sprintf("conversation %d says %d", n, i))
		answered.Add(1)
	}
	// Each turn needs a ticket, so that the faults hit the same share of the turns on any machine.
	tickets := make(chan struct{}, conversations*length)
	var clients sync.WaitGroup
	for n := range conversations {
		clients.Go(func() {
			for i := range length - 1 {
				<-tickets
				talk(n, i)
			}
		})
	}
	given := int64(0)
	begin := func(percent int) { // without waiting for the answers
		for ; given < int64(percent*conversations*(length-1)/100); given++ {
			tickets <- struct{}{}
		}
	}
	until := func(percent int) {
		begin(percent)
		for answered.Load() < given {
			time.Sleep(time.Millisecond)
		}
	}
	again := func(p *process) {
		p.kill()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		p.start()
		time.Sleep(500 * time.Millisecond) // time to read the state of the other replicas
	}
	// A replica needs a moment to reach Postgres again.
	reached := func() {
		waitUntil(t, "all replicas to reach Postgres", func() bool {
			return !slices.ContainsFunc(all, func(p *process) bool { s, err := p.queue(); return err != nil || s.SharedDown != nil })
		})
	}
	// While Postgres is down, a replica can repeat only the blocks that it has read before. People
	// pause for longer than this between two turns.
	fault := func(end int, begins, ends func()) {
		time.Sleep(1500 * time.Millisecond)
		begins()
		until(end)
		ends()
		reached()
	}
	until(30)
	begin(40)
	again(all[0])
	until(50)
	fault(55, func() { server.Kill(t) }, func() { server.Begin(t) })
	begin(65)
	again(all[1])
	until(70)
	fault(75, func() { server.Freeze(t) }, func() { server.Thaw(t) })
	begin(85)
	again(all[2])
	until(92)
	fault(100, func() { server.Kill(t) }, func() { server.Begin(t) })
	clients.Wait()
	// Like people who come back, each conversation sends one more turn. Its history
	// contains the answers given at the moment of a kill.
	for n := range conversations {
		talk(n, length-1)
	}
	defer func() {
		for _, p := range all {
			if s, err := p.queue(); t.Failed() {
				t.Logf("%+v %v", s, err)
			}
		}
	}()
	const stored = kept + " AND content LIKE 'conversation % says %'"
	waitUntil(t, fmt.Sprint(conversations*length, " messages"), func() bool {
		return postgrestest.Count(t, database, "SELECT count(DISTINCT content) "+stored) >= conversations*length
	})
	groups := postgrestest.Count(t, database, "SELECT count(DISTINCT grp) "+stored)
	uneven := postgrestest.Count(t, database, fmt.Sprintf("SELECT count(*) FROM (SELECT content %s GROUP BY content HAVING count(*) <> %d OR count(DISTINCT grp) <> %d) x", stored, groups, groups))
	blocks := 0
	for _, attempts := range seen.sent {
		if slices.ContainsFunc(attempts[0], func(text string) bool { return strings.Contains(text, "<graphiti_memory>") }) {
			blocks++
		}
	}
	t.Logf("%d turns to %d groups over 3 replicas, %d requests repeated, %d turns with a block", answered.Load(), groups, repeated.Load(), blocks)
	if uneven > mayRepeat {
		t.Errorf("%d messages are not stored once in each of %d groups", uneven, groups)
	}
	if 100*len(seen.moved) > mayMove*conversations*length {
		t.Errorf("%d conversations began differently than before:\n%q", len(seen.moved), seen.moved[:min(10, len(seen.moved))])
	}
	if blocks < conversations*length/2 {
		t.Errorf("only %d turns had a block: nothing is shown by this", blocks)
	}
}

// TestReplicasShareRates checks that the requests of a caller count at every replica.
func TestReplicasShareRates(t *testing.T) {
	t.Parallel()
	const requests = 6 // a minute: they refill more slowly than any machine asks
	model := startModel(t)
	model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: "ok"} })
	database := postgrestest.Start(t).Database(t)
	all := replicas(t, 2, model, database, fmt.Sprint("limits.requests_per_minute=", requests))
	ask := func(p *process, key string) (refused bool) {
		t.Helper()
		url, _ := p.address()
		req, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"short"}]}`))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		if refused = resp.StatusCode == http.StatusTooManyRequests; !refused && resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
		return refused
	}
	shared := func(rows string) int {
		return postgrestest.Count(t, database, "SELECT count(*) FROM graphiti_proxy.rates"+rows)
	}
	admitted := func(p *process) (n int) {
		t.Helper()
		waitUntil(t, "a refusal", func() bool {
			n++
			return ask(p, "caller")
		})
		return n - 1
	}
	if n := admitted(all[0]); n < requests {
		t.Fatalf("a replica alone admits %d requests, want %d", n, requests)
	}
	waitUntil(t, "the empty bucket in Postgres", func() bool {
		ask(all[0], "caller") // keeps it empty
		return shared(" WHERE full_at > now() + interval '40 s'") > 0
	})
	// The second exchange begins after the other replica has applied the first.
	for i := range 2 {
		before := shared("")
		waitUntil(t, "an exchange of the other replica", func() bool {
			ask(all[1], fmt.Sprint("another caller ", i))
			return shared("") > before
		})
	}
	if n := admitted(all[1]); n >= requests {
		t.Errorf("the other replica admits %d more requests, want less than %d", n, requests)
	}
}

// TestForgettingReachesAllReplicas checks that no replica shows a fact that another replica
// was asked to forget, in old or in new conversations.
func TestForgettingReachesAllReplicas(t *testing.T) {
	t.Parallel()
	model := startModel(t)
	var mu sync.Mutex
	var last string
	model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		mu.Lock()
		defer mu.Unlock()
		last = ""
		for _, m := range c.Messages {
			last += m.Text + "\n"
		}
		return proxytest.Reply{Text: "ok"}
	})
	all := replicas(t, 2, model, postgrestest.Start(t).Database(t), "recall.timeout=3s")
	user := func(text string) map[string]string { return map[string]string{"role": "user", "content": text} }
	ask := func(p *process, session string, messages ...map[string]string) string {
		t.Helper()
		must(t, helptest.ErrorOf(p.ask(session, messages)))
		mu.Lock()
		defer mu.Unlock()
		return last
	}
	ask(all[0], "a", user("The heliport is called Foxglove."))
	first := user("What is the heliport called?")
	talks := make([]string, len(all))
	for i, p := range all {
		n := 0
		waitUntil(t, fmt.Sprint("replica ", i, " to recall it"), func() bool { // the turn is stored after the answer
			n++
			talks[i] = fmt.Sprint("b", i, "-", n)
			got := ask(p, talks[i], first)
			return strings.Contains(got, "- ") && strings.Contains(got, "Foxglove")
		})
	}
	_, admin := all[1].address()
	for _, group := range []string{"agent_ava__user_josh", "user_josh"} {
		must(t, helptest.ErrorOf(command(t, t.TempDir(), "memory", "forget", "--group", group, "--yes", "--set", "admin.listen="+strings.TrimPrefix(admin, "http://"))))
	}
	for i, p := range all {
		old := ask(p, talks[i^1], first, map[string]string{"role": "assistant", "content": "ok"}, user("And since when?"))
		if strings.Contains(old, "Foxglove") {
			t.Errorf("replica %d still shows it in an old conversation: %s", i, old)
		}
		if got := ask(p, fmt.Sprint("c", i), first); strings.Contains(got, "Foxglove") {
			t.Errorf("replica %d still shows it in a new conversation: %s", i, got)
		}
	}

	// A forgotten conversation also disappears from replicas that recall it elsewhere.
	ask(all[0], "one", user("The depot is called Larkspur."))
	ask(all[1], "two", user("The ferry is called Oleander."))
	places := user("What are the depot and the ferry called?")
	n := 0
	waitUntil(t, "both to be recalled", func() bool {
		n++
		got := ask(all[1], fmt.Sprint("d", n), places)
		return strings.Contains(got, "Larkspur") && strings.Contains(got, "Oleander")
	})
	must(t, helptest.ErrorOf(command(t, t.TempDir(), "memory", "forget", "--session", "one", "--yes", "--set", "admin.listen="+strings.TrimPrefix(admin, "http://"))))
	for i, p := range all {
		if got := ask(p, fmt.Sprint("e", i), places); strings.Contains(got, "Larkspur") || !strings.Contains(got, "Oleander") {
			t.Errorf("replica %d recalls %s", i, got)
		}
		if got := ask(p, "one", user("Where were we?")); strings.Contains(got, "Larkspur") {
			t.Errorf("replica %d tells the session %s", i, got)
		}
		if got := ask(p, fmt.Sprint("d", n), places, map[string]string{"role": "assistant", "content": "ok"}, user("Since when?")); strings.Contains(got, "Larkspur") {
			t.Errorf("replica %d still shows it in a running conversation: %s", i, got)
		}
	}
}

// TestReplicasCopyToGraphiti checks that one of two replicas copies the turns of both to Graphiti,
// and that the other one takes over when it is killed.
func TestReplicasCopyToGraphiti(t *testing.T) {
	t.Parallel()
	model := startModel(t)
	model.SetAnswer(func(c proxytest.Input) proxytest.Reply {
		return proxytest.Reply{Text: "answer to " + spoken(c, len(c.Messages)-1)}
	})
	g := startGraphiti(t, graphititest.Options{})
	all := replicas(t, 2, model, postgrestest.Start(t).Database(t), "memory.backend=graphiti", "memory.endpoint="+g.URL(), "memory.consent=true")
	turns := make(map[int]int)
	say := func(n int, p *process) {
		t.Helper()
		if _, err := p.ask(fmt.Sprint("s", n), []map[string]string{{"role": "user", "content": fmt.Sprintf("conversation %d says 0", n)}}); err != nil {
			t.Fatal(err)
		}
		turns[n] = 1
	}
	arrive := func(when string) {
		t.Helper()
		// For ten seconds after a kill, no replica sends: a call of the dead one may arrive.
		for end := time.Now().Add(40 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			episodes := fmt.Sprint(g.Episodes("user_josh"), g.Episodes("agent_ava__user_josh"))
			if !slices.ContainsFunc(slices.Collect(maps.Keys(turns)), func(n int) bool {
				return strings.Count(episodes, fmt.Sprintf("answer to conversation %d says 0", n)) < 2
			}) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("waited in vain for %s", when)
			}
		}
	}
	for n := range 10 {
		say(n, all[n%2])
	}
	arrive("the turns of both replicas")
	if _, twice, _ := tally(t, g, turns); twice > 0 {
		t.Errorf("Graphiti has %d messages twice without a fault", twice)
	}
	for i, p := range all {
		p.kill()
		for n := range 3 {
			say(10+3*i+n, all[1-i])
		}
		waitUntil(t, "the other replica to deliver", func() bool { s, err := all[1-i].queue(); return err == nil && s.Delivers })
		arrive(fmt.Sprint("the turns after the death of replica ", i))
		p.start()
	}
}
