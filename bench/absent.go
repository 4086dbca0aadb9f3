package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The texts of the requests: lines with tabs between their fields. The first line of each
// file describes the fields.
var (
	//go:embed testdata/everyday.tsv
	everyday string
	//go:embed testdata/person.tsv
	person string
)

// fields returns the fields of each line of a list, without its comments.
func fields(list string) (out [][]string) {
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	return out
}

// asking is the first message of a chat, and its sort.
type asking struct{ sort, text string }

const (
	own        = "questions about the memory's own content"
	others     = "questions about other conversations"
	answered   = "first-person questions that the memory answers"
	unanswered = "first-person questions that it does not answer"
	daily      = "everyday requests"
	followUps  = "of them, follow-ups"
)

var sorts = []string{own, answered, others, unanswered, daily, followUps}

func everydayRequests() (out []asking) {
	for _, f := range fields(everyday) {
		sort := daily
		if f[1] == "followup" {
			sort = followUps
		}
		out = append(out, asking{sort, f[2]})
	}
	return out
}

// absent measures the frequency and the size of blocks, above all for requests that a memory
// cannot answer: each memory gets its own questions, those about other memories, and
// everyday requests. Only every every-th request is sent.
func absent(dir, binary string, m *model, convs []*locomo, every int, env ...string) error {
	counts := make(map[string]*tally)
	for _, s := range sorts {
		counts[s] = &tally{}
	}
	for i := range len(convs) + 1 {
		lines := filepath.Join(dir, fmt.Sprint("absent", i, ".jsonl"))
		var err error
		ask := everydayRequests()
		if i == len(convs) {
			err = writePerson(lines)
			for n, sort := range []string{answered, unanswered} {
				for _, f := range fields(person) {
					ask = append(ask, asking{sort, f[n+1]})
				}
			}
		} else {
			_, err = convs[i].write(lines)
			for j, c := range convs {
				for _, q := range c.QA {
					if q.Category < 1 || q.Category > 4 {
						continue
					}
					ask = append(ask, asking{map[bool]string{true: own, false: others}[i == j], q.Question})
				}
			}
		}
		if err != nil {
			return err
		}
		p := newProxyRun(binary, filepath.Join(dir, fmt.Sprint("absent", i)), m.url, append(slices.Clone(env), "GRAPHITI_PROXY_INGEST_ENABLED=false", "GRAPHITI_PROXY_RECALL_TIMEOUT=5s")...)
		if err := p.askAbout(lines, ask, every, counts, m); err != nil {
			return err
		}
	}
	fmt.Printf("| | asked | with a block | characters of such a block |\n| --- | --- | --- | --- |\n")
	for _, s := range sorts {
		t := counts[s]
		if s == daily { // follow-ups are everyday requests too
			f := counts[followUps]
			t.asked, t.blocks, t.chars = t.asked+f.asked, t.blocks+f.blocks, t.chars+f.chars
		}
		fmt.Printf("| %s | %d | %.3f | %d |\n", s, t.asked, float64(t.blocks)/float64(max(1, t.asked)), t.chars/max(1, t.blocks))
	}
	return nil
}

// tally counts the results for one sort of requests.
type tally struct{ asked, blocks, chars int }

// askAbout imports the lines into a proxy's memory, starts the proxy and sends it the
// requests.
func (p *proxyRun) askAbout(lines string, ask []asking, every int, counts map[string]*tally, m *model) error {
	defer p.stop()
	if err := errors.Join(p.command("memory", "import", lines), p.start()); err != nil {
		return err
	}
	for n, r := range ask {
		if n%every != 0 {
			continue
		}
		if _, _, err := chat(p.url, []json.RawMessage{message("user", r.text)}); err != nil {
			return err
		}
		block, err := blockIn(m.last())
		if err != nil {
			return err
		}
		t := counts[r.sort]
		t.asked++
		if block != "" {
			t.blocks++
			t.chars += len([]rune(block))
		}
	}
	return nil
}

// blockIn returns the block in the first message of a request, or "".
func blockIn(body []byte) (string, error) {
	blocks, err := blocksIn(body)
	if err != nil {
		return "", err
	}
	return blocks[0], nil
}

// blocksIn returns the block in each message of a request, or "".
func blocksIn(body []byte) ([]string, error) {
	var sent struct{ Messages []struct{ Content string } }
	if err := json.Unmarshal(body, &sent); err != nil || len(sent.Messages) == 0 {
		return nil, errors.Join(err, errors.New("the upstream got no message"))
	}
	blocks := make([]string, len(sent.Messages))
	for i, m := range sent.Messages {
		const end = "</graphiti_memory>"
		if block, _, ok := strings.Cut(m.Content, end); ok {
			blocks[i] = block + end
		}
	}
	return blocks, nil
}

// writePerson writes the statements of one person as lines to import, each in a conversation
// of its own.
func writePerson(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	began := time.Date(2024, 1, 8, 9, 0, 0, 0, time.UTC)
	for i, l := range fields(person) {
		err := enc.Encode(map[string]string{
			"scope": "user", "role": "user", "content": l[0],
			"timestamp": began.Add(time.Duration(i) * 26 * time.Hour).Format(time.RFC3339), "session": fmt.Sprint("chat", i),
		})
		if err != nil {
			return err
		}
	}
	return f.Close()
}
