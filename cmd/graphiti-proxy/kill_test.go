package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/proxytest"
)

const (
	// moment is what a kill may cost: turns whose answer ended no longer ago
	// than that.
	moment = 50 * time.Millisecond

	// calm is how late a timer may be on a machine of which the moment is asked.
	calm = 3 * time.Millisecond

	// hops is how often the way of a turn to the disk waits for a processor,
	// each time about as long as a timer is late.
	hops = 20
)

// TestKillLosesAMoment: 300 turns a second, and the proxy is killed. A turn that
// is not in the ledger then was answered at most 50 ms before. A machine that has
// no processor free for a timer, or for the clients, has none for the proxy: there
// the test is repeated. On one that is never calm it is enough that once no turn
// took longer than that by more than the timers were late at each hop.
func TestKillLosesAMoment(t *testing.T) {
	long(t, "takes up to half a minute")
	hurried := false // on a machine that was not calm
	for range 5 {
		r := killUnderLoad(t)
		var oldest time.Duration
		if n := len(r.lost); n > 0 {
			oldest = r.lost[n-1]
		}
		t.Logf("%d turns answered in %v, %d of them not in the ledger, the oldest from %v before; timers were up to %v late", r.answered, killAfter, len(r.lost), oldest, r.late)
		if r.late <= calm && r.answered >= int(killAfter.Seconds()*killRate*9/10) {
			if oldest > moment {
				t.Errorf("a turn is lost that was answered %v before the kill, want %v at most", oldest, moment)
			}
			return
		}
		if oldest <= moment+hops*r.late {
			hurried = true
		}
	}
	if !hurried {
		t.Error("turns are lost that were answered longer ago than the machine explains")
	}
}

const (
	killAfter         = 5 * time.Second
	killConversations = 60
	killRate          = 300 // turns a second
)

type killed struct {
	answered int
	lost     []time.Duration // how long before the kill, the longest last
	late     time.Duration   // the latest timer of the last second
}

// killUnderLoad has conversations answered, kills the proxy, and looks in the
// ledger that the next one finds. Every other conversation names its session.
func killUnderLoad(t *testing.T) (r killed) {
	t.Helper()
	model, err := proxytest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	model.SetAnswer(func(proxytest.Input) proxytest.Reply { return proxytest.Reply{Text: "noted"} })
	p, dir := &process{t: t, args: []string{"serve"}}, t.TempDir()
	for k, v := range map[string]string{
		"listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "data_dir": dir, "upstream.openai": model.URL(),
		"memory.backend": "graphiti", "memory.endpoint": "http://127.0.0.1:1", "memory.consent": "true", // down: turns wait
		"identity.owner": "user:josh", "log.level": "error",
	} {
		p.args = append(p.args, "--set", k+"="+v)
	}
	p.start()
	var mu sync.Mutex // guards answered
	answered := make(map[string]time.Time)
	ctx, stop := context.WithTimeout(t.Context(), killAfter)
	defer stop()
	var clients sync.WaitGroup
	for n := range killConversations {
		clients.Go(func() {
			p.talk(ctx, n, func(text string) {
				mu.Lock()
				defer mu.Unlock()
				answered[text] = time.Now()
			})
		})
	}
	r.late = latestTimer(ctx, time.Second)
	at := time.Now()
	p.kill()
	clients.Wait()
	p.start() // which brings the ledger in order
	p.kill()
	for _, text := range turnsInLedger(t, dir) {
		if _, ok := answered[text]; ok {
			r.answered++
			delete(answered, text)
		}
	}
	r.answered += len(answered)
	for _, ended := range answered {
		r.lost = append(r.lost, max(0, at.Sub(ended)))
	}
	slices.Sort(r.lost)
	return r
}

// talk is one conversation, until ctx ends or the proxy does.
func (p *process) talk(ctx context.Context, n int, answered func(text string)) {
	const pause = time.Second * killConversations / killRate
	session := ""
	if n%2 == 0 {
		session = fmt.Sprint("s", n)
	}
	next := time.NewTimer(pause * time.Duration(n) / killConversations)
	defer next.Stop()
	var history []map[string]string
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(pause)
		}
		text := fmt.Sprintf("conversation %d says %d", n, i)
		history = append(history, map[string]string{"role": "user", "content": text})
		answer, err := p.ask(session, history)
		if err != nil {
			return
		}
		answered(text)
		history = append(history, map[string]string{"role": "assistant", "content": answer})
	}
}

// latestTimer waits until ctx ends, and returns by how much timers were late in
// the last part of that time.
func latestTimer(ctx context.Context, part time.Duration) (late time.Duration) {
	end, _ := ctx.Deadline()
	for ctx.Err() == nil {
		due := time.Now().Add(time.Millisecond)
		<-time.After(time.Until(due))
		if now := time.Now(); end.Sub(now) < part {
			late = max(late, now.Sub(due))
		}
	}
	return late
}

// turnsInLedger is what was said in the turns that wait.
func turnsInLedger(t *testing.T, dir string) (said []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "spool.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT DISTINCT json_extract(body, '$.User') FROM turns WHERE state IN ('pending', 'sent')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		said = append(said, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return said
}

// TestKillWithAMemoryOfItsOwn: a proxy whose memory is a file is killed again and
// again, while conversations go on that show their history with each request.
// Every turn is in the memory in the end, once, though the ledger may not have
// known of it when the proxy was killed.
func TestKillWithAMemoryOfItsOwn(t *testing.T) {
	t.Parallel()
	const conversations, length, kills = 16, 24, 6
	model, err := proxytest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	var answers atomic.Int64
	p, dir := &process{t: t, args: []string{"serve"}, solo: true}, t.TempDir()
	set := []string{"--set", "data_dir=" + dir, "--set", "identity.owner=user:josh"}
	for k, v := range map[string]string{
		"listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0", "upstream.openai": model.URL(), "log.level": "error",
		"recall.timeout": unhurried, // what is not read in time is not kept
	} {
		p.args = append(p.args, "--set", k+"="+v)
	}
	p.args = append(p.args, set...)
	model.SetAnswer(func(proxytest.Input) proxytest.Reply {
		return proxytest.Reply{Text: fmt.Sprint("answer number ", answers.Add(1), " is given")}
	})
	p.start()
	next, over := make(chan struct{}, conversations*length), make(chan struct{})
	said := make([][]string, conversations) // and answered: each in its own conversation
	var clients sync.WaitGroup
	for n := range conversations {
		clients.Go(func() {
			session := ""
			if n%2 == 0 {
				session = fmt.Sprint("s", n)
			}
			var history []map[string]string
			for i := range length {
				if i == length-1 {
					<-over // what was lost in the moment of a kill is in the histories
				}
				text := fmt.Sprintf("conversation %d says %d here", n, i)
				history = append(history, map[string]string{"role": "user", "content": text})
				answer, err := p.ask(session, history)
				for ; err != nil; answer, err = p.ask(session, history) {
				}
				history = append(history, map[string]string{"role": "assistant", "content": answer})
				said[n] = append(said[n], text, answer)
				next <- struct{}{}
			}
		})
	}
	for range kills {
		for range conversations * (length - 1) / kills {
			<-next
		}
		p.kill()
		p.start()
	}
	close(over)
	clients.Wait()
	held := func() map[string]int {
		out, err := command(t, dir, append([]string{"memory", "export"}, set...)...)
		if err != nil {
			t.Fatal(err)
		}
		times := make(map[string]int)
		for line := range strings.Lines(out) {
			var r service.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			times[r.Text]++
		}
		return times
	}
	waitUntil(t, "the last turns", func() bool { s, err := p.queue(); return err == nil && s.Pending == 0 })
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = p.cmd.Wait()
	times := held()
	for n := range said {
		for _, text := range said[n] {
			if times[text] != 1 {
				t.Errorf("conversation %d: %q is there %d times", n, text, times[text])
			}
		}
	}
}
