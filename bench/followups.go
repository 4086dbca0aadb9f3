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

//go:embed testdata/followups.tsv
var followUpList string

// followups measures whether what is asked next in a chat is answered, though it
// does not repeat what it is about: all that was said is in one memory, and of
// each line both questions are one chat.
func followups(dir, binary string, m *model, env ...string) error {
	list := fields(followUpList)
	lines := filepath.Join(dir, "followups.jsonl")
	if err := writeFollowUps(lines, list); err != nil {
		return err
	}
	p := newProxyRun(binary, filepath.Join(dir, "followups"), m.url, append(slices.Clone(env), "GRAPHITI_PROXY_INGEST_ENABLED=false", "GRAPHITI_PROXY_RECALL_TIMEOUT=5s")...)
	defer p.stop()
	if err := errors.Join(p.command("memory", "import", lines), p.start()); err != nil {
		return err
	}
	kinds := []string{"follow", "change"}
	asked, right, alone, chars := make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
	for _, l := range list {
		kind, said := l[0], shownAs(l[3])
		first, ok := message("user", l[2]), message("assistant", "ok")
		if _, _, err := chat(p.url, []json.RawMessage{first}); err != nil {
			return err
		}
		after, err := blocksOf(p, m, first, ok, message("user", l[4]))
		if err != nil {
			return err
		}
		// A chat whose beginning nobody has seen got no block there.
		unseen, err := blocksOf(p, m, message("user", "Hello. "+l[2]), ok, message("user", l[4]))
		if err != nil {
			return err
		}
		asked[kind]++
		chars[kind] += len([]rune(after[2]))
		if strings.Contains(after[0]+after[2], said) {
			right[kind]++
		}
		if strings.Contains(unseen[2], said) {
			alone[kind]++
		}
	}
	fmt.Printf("| what is asked next | asked | shown, there or before | shown there, where nothing was before | characters of the second block |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range kinds {
		n := float64(max(1, asked[k]))
		fmt.Printf("| %s | %d | %.3f | %.3f | %.0f |\n", k, asked[k], float64(right[k])/n, float64(alone[k])/n, float64(chars[k])/n)
	}
	return nil
}

// blocksOf are the blocks before the messages of a chat.
func blocksOf(p *proxyRun, m *model, messages ...json.RawMessage) ([]string, error) {
	if _, _, err := chat(p.url, messages); err != nil {
		return nil, err
	}
	return blocksIn(m.last())
}

// writeFollowUps writes what was said as lines to import, each of a
// conversation of its own.
func writeFollowUps(path string, list [][]string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	began := time.Date(2024, 1, 8, 9, 0, 0, 0, time.UTC)
	for _, n := range []int{1, 3} {
		for i, l := range list {
			err := enc.Encode(map[string]string{
				"scope": "user", "role": "user", "content": l[n],
				"timestamp": began.Add(time.Duration(n*len(list)+i) * 7 * time.Hour).Format(time.RFC3339), "session": fmt.Sprint("said", n, "-", i),
			})
			if err != nil {
				return err
			}
		}
	}
	return f.Close()
}
