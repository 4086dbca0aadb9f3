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

//go:embed testdata/corrections.tsv
var pairs string

// corrections measures whether what was said later is shown: all pairs are in
// one memory, the later ones weeks behind the first ones, and each question is
// a chat of its own.
func corrections(dir, binary string, m *model, env ...string) error {
	list := fields(pairs)
	lines := filepath.Join(dir, "corrections.jsonl")
	if err := writePairs(lines, list); err != nil {
		return err
	}
	p := newProxyRun(binary, filepath.Join(dir, "corrections"), m.url, append(slices.Clone(env), "GRAPHITI_PROXY_INGEST_ENABLED=false", "GRAPHITI_PROXY_RECALL_TIMEOUT=5s")...)
	defer p.stop()
	if err := errors.Join(p.command("memory", "import", lines), p.start()); err != nil {
		return err
	}
	kinds := []string{"changed", "negated", "moved", "cancelled", "both"}
	asked, right := make(map[string]int), make(map[string]int)
	for _, l := range list {
		kind, first, second, question := l[0], l[1], l[2], l[3]
		if _, _, err := chat(p.url, []json.RawMessage{message("user", question)}); err != nil {
			return err
		}
		block, err := blockIn(m.last())
		if err != nil {
			return err
		}
		old, newer := strings.Contains(block, shownAs(first)), strings.Contains(block, shownAs(second))
		asked[kind]++
		if newer && (old || kind != "both") {
			right[kind]++
		}
	}
	fmt.Printf("| what was said later | asked | right |\n| --- | --- | --- |\n")
	for _, k := range kinds {
		fmt.Printf("| %s | %d | %.3f |\n", k, asked[k], float64(right[k])/float64(max(1, asked[k])))
	}
	return nil
}

// writePairs writes pairs as lines to import.
func writePairs(path string, list [][]string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	began := time.Date(2024, 1, 8, 9, 0, 0, 0, time.UTC)
	for n := 1; n <= 2; n++ {
		for i, l := range list {
			err := enc.Encode(map[string]string{
				"scope": "user", "role": "user", "content": l[n],
				"timestamp": began.Add(time.Duration(n*len(list)+i) * 7 * time.Hour).Format(time.RFC3339), "session": fmt.Sprint("pair", n, "-", i),
			})
			if err != nil {
				return err
			}
		}
	}
	return f.Close()
}
