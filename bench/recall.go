package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// locomo is a conversation of LoCoMo (Maharana et al., 2024), with the fields in use. Its
// licence does not allow copies in this repository.
type locomo struct {
	Speaker  string `json:"speaker_a"`
	Sessions []struct {
		Session int
		Date    string `json:"date_time"`
		Turns   []struct {
			Speaker, Text string
			ID            string `json:"dia_id"`
		}
	}
	QA []struct {
		Question string
		Evidence []string
		Category int
	}
}

var categories = []string{"", "multi-hop", "temporal", "open-domain", "single-hop"}

// recall measures the share of the turns with the answer to a question that its block shows.
// It imports the conversations with the users' command, and each question is a chat of its
// own.
func recall(args []string) error {
	fs := flag.NewFlagSet("recall", flag.ContinueOnError)
	data := fs.String("data", "", "folder with LoCoMo's conversations, conv-*.json")
	chars := fs.Int("chars", 2500, "recall.max_chars")
	facts := fs.Int("facts", 12, "recall.max_facts")
	embed := fs.String("embed", "", "embedding.url, to search also by meaning")
	settle := fs.Duration("settle", time.Minute, "with -embed: maximum time for a conversation's embeddings before its questions")
	absentFlag := fs.Bool("absent", false, "measure how often a question without evidence gets a block")
	corrected := fs.Bool("corrections", false, "measure whether corrections are shown; needs no data")
	followed := fs.Bool("followups", false, "measure whether follow-up questions are answered; needs no data")
	every := fs.Int("every", 1, "ask one in this many questions, for a rough estimate")
	score := fs.String("min-score", "", "recall.min_score; empty: the default")
	old := fs.String("binary", "", "binary of the proxy to measure, such as an earlier version; default: this version")
	if err := fs.Parse(args); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(*data, "conv-*.json"))
	if !*corrected && !*followed && (err != nil || *data == "" || len(files) == 0) {
		fmt.Println("SKIPPED: no LoCoMo conversations; give their folder as -data (they may not be part of this project: CC BY-NC)")
		return nil
	}
	dir, err := os.MkdirTemp("", "graphiti-proxy-recall-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := *old
	if binary == "" {
		if binary, err = buildProxy(dir); err != nil {
			return err
		}
	}
	var env []string
	if *score != "" {
		env = append(env, "GRAPHITI_PROXY_RECALL_MIN_SCORE="+*score)
	}
	m, err := startModel(func([]byte) string { return `{"role":"assistant","content":"ok"}` })
	if err != nil {
		return err
	}
	defer func() { _ = m.server.Close() }()
	convs := make([]*locomo, len(files))
	for i, file := range files {
		if convs[i], err = readLocomo(file); err != nil {
			return err
		}
	}
	if *corrected {
		return corrections(dir, binary, m, env...)
	}
	if *followed {
		return followups(dir, binary, m, env...)
	}
	if *absentFlag {
		return absent(dir, binary, m, convs, max(1, *every), env...)
	}
	var share, asked [5]float64
	var took time.Duration
	blocks, length := 0, 0
	for i, c := range convs {
		home := filepath.Join(dir, fmt.Sprint(i))
		p := newProxyRun(binary, home, m.url, "GRAPHITI_PROXY_INGEST_ENABLED=false", "GRAPHITI_PROXY_RECALL_TIMEOUT=5s",
			fmt.Sprintf("GRAPHITI_PROXY_RECALL_MAX_CHARS=%d", *chars), fmt.Sprintf("GRAPHITI_PROXY_RECALL_MAX_FACTS=%d", *facts))
		p.env = append(p.env, env...)
		if *embed != "" {
			p.env = append(p.env, "GRAPHITI_PROXY_EMBEDDING_URL="+*embed, "GRAPHITI_PROXY_MEMORY_CONSENT=true")
		}
		lines := filepath.Join(dir, fmt.Sprint(i)+".jsonl")
		texts, err := c.write(lines)
		if err == nil {
			err = p.command("memory", "import", lines)
		}
		if err == nil {
			err = p.start()
		}
		if err != nil {
			p.stop()
			return err
		}
		if *embed != "" {
			time.Sleep(*settle)
		}
		for n, q := range c.QA {
			if n%max(1, *every) != 0 {
				continue
			}
			evidence := evidenceOf(q.Evidence, texts)
			if q.Category < 1 || q.Category > 4 || len(evidence) == 0 {
				continue
			}
			begin := time.Now()
			if _, _, err := chat(p.url, []json.RawMessage{message("user", q.Question)}); err != nil {
				p.stop()
				return err
			}
			took += time.Since(begin)
			block, err := blockIn(m.last())
			if err != nil {
				p.stop()
				return err
			}
			found := 0.0
			for _, text := range evidence {
				if strings.Contains(block, shownAs(text)) {
					found++
				}
			}
			if block != "" {
				blocks++
				length += len([]rune(block))
			}
			for _, k := range []int{0, q.Category} {
				share[k] += found / float64(len(evidence))
				asked[k]++
			}
		}
		p.stop()
	}
	if asked[0] == 0 {
		return errors.New("no questions in these files")
	}
	fmt.Printf("| category | questions | share of the evidence shown |\n| --- | --- | --- |\n")
	for k := 1; k < len(share); k++ {
		if asked[k] > 0 {
			fmt.Printf("| %s | %.0f | %.3f |\n", categories[k], asked[k], share[k]/asked[k])
		}
	}
	fmt.Printf("| all | %.0f | %.3f |\n\n%.0f characters in a block on average, %s for a request\n",
		asked[0], share[0]/asked[0], float64(length)/float64(max(1, blocks)), (took / time.Duration(asked[0])).Round(time.Microsecond))
	return nil
}

func readLocomo(file string) (*locomo, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c locomo
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &c, nil
}

// write writes the conversation as lines to import, and returns the texts by ID.
func (c *locomo) write(path string) (map[string]string, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	texts, enc := make(map[string]string), json.NewEncoder(f)
	for _, s := range c.Sessions {
		at, err := time.Parse("3:04 pm on 2 January, 2006", s.Date)
		if err != nil {
			return nil, fmt.Errorf("read a date: %w", err)
		}
		for i, t := range s.Turns {
			texts[t.ID] = t.Text
			role := "assistant"
			if t.Speaker == c.Speaker {
				role = "user"
			}
			err := enc.Encode(map[string]string{
				"scope": "user", "role": role, "name": t.Speaker, "content": t.Text,
				"timestamp": at.Add(time.Duration(i) * time.Minute).Format(time.RFC3339), "session": fmt.Sprint(s.Session),
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return texts, f.Close()
}

var between = regexp.MustCompile(`[;, ]+`)

func evidenceOf(ids []string, texts map[string]string) (out []string) {
	for _, list := range ids {
		for _, id := range between.Split(list, -1) {
			if texts[id] != "" {
				out = append(out, texts[id])
			}
		}
	}
	return out
}

// shownAs returns a text, or the start of a long one, in the form of a block.
func shownAs(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return strings.NewReplacer("<", "‹", ">", "›").Replace(string(runes[:min(len(runes), 300)]))
}
