package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed testdata/followups.tsv
var followUpList string

// followups measures how often memory answers the second question of a chat, which does not
// repeat its subject. All statements are in one memory, and the two questions of each line
// are one chat.
func followups(dir, binary string, m *model, env ...string) error {
	list := fields(followUpList)
	p, err := remembering(filepath.Join(dir, "followups"), binary, m, env, list, 1, 3)
	if err != nil {
		return err
	}
	defer p.stop()
	kinds := []string{"follow", "change"}
	asked, right, byItself, chars := make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
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
		// A chat with an unknown beginning has no block in its first message.
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
			byItself[kind]++
		}
	}
	fmt.Printf("| follow-up | questions | shown by then | shown in the second block alone | characters of the second block |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range kinds {
		n := float64(max(1, asked[k]))
		fmt.Printf("| %s | %d | %.3f | %.3f | %.0f |\n", k, asked[k], float64(right[k])/n, float64(byItself[k])/n, float64(chars[k])/n)
	}
	return nil
}

// blocksOf sends a chat and returns the block in each of its messages, or "".
func blocksOf(p *proxyRun, m *model, messages ...json.RawMessage) ([]string, error) {
	if _, _, err := chat(p.url, messages); err != nil {
		return nil, err
	}
	return blocksIn(m.last())
}
