package inspector

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// export sends the contents of one memory, or of all memories of a person.
func (v *visit) export() error { return v.exportOnly(nil) }

// exportOnly sends the messages with ids, or all contents without them, as a file of JSON Lines. An
// error after the first line becomes the last line.
func (v *visit) exportOnly(ids []string) error {
	var groups []string
	if group := v.r.FormValue("group"); group != "" {
		groups = []string{group}
	} else {
		m, err := look(v, service.Groups, func(in *service.Selector) { *in = v.whose().selector() })
		if err != nil {
			return err
		}
		for _, o := range m.Groups {
			if !o.Empty {
				groups = append(groups, o.Group)
			}
		}
	}
	lines, begun := json.NewEncoder(v.w), false
	begin := func() {
		if begun {
			return
		}
		begun = true
		v.w.Header().Set("Content-Type", "application/jsonl")
		v.w.Header().Set("Content-Disposition", `attachment; filename="memory.jsonl"`)
		v.w.WriteHeader(http.StatusOK)
	}
	for _, group := range groups {
		_, err := call(v, service.Export, func(in *service.Selector) { in.Group = group }, func(r service.Record) error {
			begin()
			if ids != nil && !slices.Contains(ids, graphiti.MessageID(r.Name)) {
				return nil
			}
			return lines.Encode(r)
		})
		if err != nil && !begun {
			return err
		}
		if err != nil {
			_ = lines.Encode(map[string]string{"error": err.Error()}) // fails only after the browser has left
			break
		}
	}
	begin()
	return nil
}
