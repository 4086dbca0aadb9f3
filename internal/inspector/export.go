package inspector

import (
	"encoding/json"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// exportOnly sends the messages with ids, or all contents without them, of one memory, of a conversation,
// or of all memories of a person, as a file of JSON Lines. An error after the first line becomes the last
// line.
func (v *visit) exportOnly(ids []string) error {
	var groups []string
	from := v.whose().selector()
	from.Session = v.r.FormValue("session")
	if group := v.r.FormValue("group"); group != "" {
		groups = []string{group}
	} else {
		m, err := look(v, service.Groups, func(in *service.Selector) { *in = from })
		if err != nil {
			return err
		}
		for _, o := range append(m.Groups, m.Parts...) {
			if !o.Empty {
				groups = append(groups, o.Group)
			}
		}
	}
	lines, begun := json.NewEncoder(v.w), false
	v.w.Header().Set("Content-Type", "application/jsonl")
	v.w.Header().Set("Content-Disposition", `attachment; filename="memory.jsonl"`)
	for _, group := range groups {
		_, err := call(v, service.Export, func(in *service.Selector) { *in = from.In(group) }, func(r service.Record) error {
			begun = true
			if ids != nil && !slices.Contains(ids, graphiti.MessageID(r.Name)) {
				return nil
			}
			return lines.Encode(r)
		})
		if err != nil && !begun {
			v.w.Header().Del("Content-Disposition")
			return err
		}
		if err != nil {
			_ = lines.Encode(map[string]string{"error": err.Error()}) // fails only after the browser has left
			break
		}
	}
	return nil
}
