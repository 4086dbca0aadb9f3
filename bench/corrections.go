package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed testdata/corrections.tsv
var pairs string

// corrections measures how often a block shows the later of two statements. All pairs are in
// one memory, the later statements weeks after the first ones, and each question is a chat
// of its own.
func corrections(dir, binary string, m *model, env ...string) error {
	list := fields(pairs)
	p, err := remembering(filepath.Join(dir, "corrections"), binary, m, env, list, 1, 2)
	if err != nil {
		return err
	}
	defer p.stop()
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
	fmt.Printf("| correction | questions | right |\n| --- | --- | --- |\n")
	for _, k := range kinds {
		fmt.Printf("| %s | %d | %.3f |\n", k, asked[k], float64(right[k])/float64(max(1, asked[k])))
	}
	return nil
}
