package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

const (
	turnsOfAgent = 30
	roundsOfTurn = 2
	agents       = 3
	cachedPrice  = 0.1 // of a prompt token, by the price lists of large providers
)

// ledger adds up the bytes of one conversation's requests that a provider's prompt cache
// serves.
type ledger struct {
	before              []byte
	sent, reused, first int
}

// add counts a request: the common prefix with the previous request is cached.
func (l *ledger) add(body []byte) {
	var r struct{ Messages json.RawMessage }
	if json.Unmarshal(body, &r) != nil {
		return
	}
	prompt := bytes.TrimSuffix(r.Messages, []byte("]"))
	same := 0
	for same < len(prompt) && same < len(l.before) && prompt[same] == l.before[same] {
		same++
	}
	if l.before == nil {
		l.first += len(prompt)
	}
	l.before, l.sent, l.reused = prompt, l.sent+len(prompt), l.reused+same
}

func (l *ledger) billed() float64 { return float64(l.sent-l.reused) + cachedPrice*float64(l.reused) }

// prefix compares the use of prompt caches in conversations of an agent: without memory, with
// facts that are searched for each request and inserted only before the last message, and
// through the proxy.
func prefix() error {
	dir, err := os.MkdirTemp("", "graphiti-proxy-prefix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := buildProxy(dir)
	if err != nil {
		return err
	}
	m, err := startModel(agentModel)
	if err != nil {
		return err
	}
	defer func() { _ = m.server.Close() }()
	p := newProxyRun(binary, filepath.Join(dir, "data"), m.url, "GRAPHITI_PROXY_RECALL_TIMEOUT=5s")
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
	ways := []string{"no memory", "recalled for each request, last message only", "graphiti-proxy"}
	sums := make([]ledger, len(ways))
	var blocks int
	for agent := range agents {
		for w := range ways {
			var l ledger
			err := converse(agent, func(turn int) error { // the memory grows between turns
				_, _, err := chat(p.url, []json.RawMessage{message("user", fmt.Sprintf("Note %d of agent %d: module%d is written by team%d and deployed on host%d.", turn, agent, turn%7, turn%5, turn))})
				return err
			}, func(messages []json.RawMessage) (json.RawMessage, error) {
				url := m.url
				switch w {
				case 1:
					messages, err = naive(p, messages)
					if err != nil {
						return nil, err
					}
				case 2:
					url = p.url
				}
				answer, _, err := chat(url, messages)
				if body := m.last(); err == nil {
					l.add(body)
					if w == 2 {
						blocks = max(blocks, bytes.Count(body, []byte("<graphiti_memory>")))
					}
				}
				return answer, err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", ways[w], err)
			}
			s := &sums[w]
			s.sent, s.reused, s.first = s.sent+l.sent, s.reused+l.reused, s.first+l.first
		}
	}
	fmt.Printf("%d conversations of %d turns with %d tool rounds each; up to %d blocks in one request.\n\n", agents, turnsOfAgent, roundsOfTurn, blocks)
	fmt.Printf("| | prompt sent | of it cached | not cached, against no memory | billed, cached at a tenth |\n| --- | --- | --- | --- | --- |\n")
	for w, name := range ways {
		s := &sums[w]
		fmt.Printf("| %s | %d KiB | %.2f%% | %.2f× | %.2f× |\n", name, s.sent>>10, 100*float64(s.reused)/float64(s.sent),
			float64(s.sent-s.reused)/float64(sums[0].sent-sums[0].reused), s.billed()/sums[0].billed())
	}
	return nil
}

// agentModel calls a tool twice for each turn, and then answers.
func agentModel(body []byte) string {
	var r struct{ Messages []struct{ Role string } }
	_ = json.Unmarshal(body, &r) // our own requests
	rounds := 0
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role != "user"; i-- {
		if r.Messages[i].Role == "tool" {
			rounds++
		}
	}
	if rounds < roundsOfTurn && bytes.Contains(body, []byte("agent task")) {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d_%d","type":"function","function":{"name":"read","arguments":"{\"file\":\"module%d.go\"}"}}]}`, len(r.Messages), rounds, rounds)
	}
	return fmt.Sprintf(`{"role":"assistant","content":"Done with step %d; the tests pass and nothing else had to change."}`, len(r.Messages))
}

// converse runs an agent's conversation. Each turn has a message of the person, rounds of
// tools and an answer.
func converse(agent int, grow func(turn int) error, ask func([]json.RawMessage) (json.RawMessage, error)) error {
	history := []json.RawMessage{message("system", "You are an agent. "+strings.Repeat("Follow the rules of the house. ", 60))}
	for turn := range turnsOfAgent {
		if err := grow(turn); err != nil {
			return err
		}
		history = append(history, message("user", fmt.Sprintf("agent task %d of %d: change module%d as its team wants, and say on which host it runs.", turn, agent, turn%7)))
		for {
			answer, err := ask(slices.Clone(history))
			if err != nil {
				return err
			}
			history = append(history, answer)
			var a struct {
				Calls []struct{ ID string } `json:"tool_calls"`
			}
			if err := json.Unmarshal(answer, &a); err != nil {
				return err
			}
			if len(a.Calls) == 0 {
				break
			}
			for _, c := range a.Calls {
				b, _ := json.Marshal(map[string]string{"role": "tool", "tool_call_id": c.ID, "content": strings.Repeat("package module // what stands in the file\n", 20)})
				history = append(history, b)
			}
		}
	}
	return nil
}

// naive searches facts for the person's last message, and inserts them only there.
func naive(p *proxyRun, messages []json.RawMessage) ([]json.RawMessage, error) {
	last := len(messages) - 1
	var m struct{ Role, Content string }
	for ; last >= 0; last-- {
		if err := json.Unmarshal(messages[last], &m); err == nil && m.Role == "user" {
			break
		}
	}
	in, _ := json.Marshal(map[string]string{"query": m.Content})
	resp, err := http.Post(p.admin+"/api/v1/memory/search", "application/json", bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var found struct{ Facts []struct{ Text string } }
	if err := json.NewDecoder(resp.Body).Decode(&found); err != nil {
		return nil, err
	}
	block := "<memory>\n"
	for _, f := range found.Facts {
		block += "- " + f.Text + "\n"
	}
	messages[last] = message("user", block+"</memory>\n\n"+m.Content)
	return messages, nil
}

// latency shows the sources of the recalls in a conversation, and the added time, if Graphiti
// takes 300 ms for a search.
func latency() error {
	dir, err := os.MkdirTemp("", "graphiti-proxy-latency-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := buildProxy(dir)
	if err != nil {
		return err
	}
	g, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	g.Always(graphititest.Search, graphititest.Slow(300*time.Millisecond))
	m, err := startModel(agentModel)
	if err != nil {
		return err
	}
	defer func() { _ = m.server.Close() }()
	p := newProxyRun(binary, filepath.Join(dir, "data"), m.url, "GRAPHITI_URL="+g.URL(), "GRAPHITI_PROXY_MEMORY_CONSENT=true")
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
	sources := make(map[string]int)
	var added []time.Duration
	n := 0
	err = converse(0, func(int) error { time.Sleep(400 * time.Millisecond); return nil }, func(messages []json.RawMessage) (json.RawMessage, error) {
		begin := time.Now()
		if _, _, err := chat(m.url, messages); err != nil {
			return nil, err
		}
		direct := time.Since(begin)
		begin = time.Now()
		answer, header, err := chat(p.url, messages)
		added = append(added, time.Since(begin)-direct)
		_, source, _ := strings.Cut(header, "source=")
		if source == "" {
			source, _, _ = strings.Cut(header, ";")
		}
		sources[source]++
		n++
		return answer, err
	})
	if err != nil {
		return err
	}
	slices.Sort(added)
	fmt.Printf("A conversation of %d turns with %d tool rounds each, a Graphiti that takes 300 ms, recall.timeout 400 ms.\n\n| answered from | requests |\n| --- | --- |\n", turnsOfAgent, roundsOfTurn)
	for _, s := range []string{"sticky", "cache", "stale", "live", "empty", "timeout"} {
		if sources[s] > 0 {
			fmt.Printf("| %s | %.0f%% |\n", s, 100*float64(sources[s])/float64(n))
		}
	}
	fmt.Printf("\nadded time: p50 %s, p99 %s\n", added[n/2].Round(10*time.Microsecond), added[n*99/100].Round(10*time.Microsecond))
	return nil
}
