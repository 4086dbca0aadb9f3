package graphititest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// problem is an error of FastAPI about an invalid part of a body. Like FastAPI's, it quotes
// that part.
type problem struct {
	Type  string `json:"type"`
	Loc   []any  `json:"loc"`
	Msg   string `json:"msg"`
	Input any    `json:"input"`
}

func unprocessable(w http.ResponseWriter, problems []problem) {
	writeJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": problems})
}

// query is the body of a search.
type query struct {
	groups []string // nil for all groups
	text   string
	max    int
	named  bool // the answer names the groups
}

func readQuery(b []byte) (query, []problem) {
	o, bad := readObject(b)
	if bad != nil {
		return query{}, []problem{*bad}
	}
	q := query{text: o.text("query", must), max: 10}
	if groups, ok := o.fields["group_ids"].([]any); ok {
		q.groups = []string{}
		for i, g := range groups {
			name, ok := g.(string)
			if !ok {
				o.reject("string_type", "Input should be a valid string", g, "group_ids", i)
			}
			q.groups = append(q.groups, name)
		}
	} else if v := o.fields["group_ids"]; v != nil {
		o.reject("list_type", "Input should be a valid list", v, "group_ids")
	}
	if v, ok := o.fields["max_facts"]; ok {
		n, ok := v.(float64)
		if !ok || n != float64(int(n)) {
			o.reject("int_type", "Input should be a valid integer", v, "max_facts")
		}
		q.max = int(n)
	}
	return q, *o.problems
}

// readConversation reads the body of /get-memory, in which center_node_uuid is required but
// may be null.
func readConversation(b []byte) (query, []problem) {
	o, bad := readObject(b)
	if bad != nil {
		return query{}, []problem{*bad}
	}
	q := query{groups: []string{o.text("group_id", must)}, max: 10}
	if _, ok := o.fields["center_node_uuid"]; !ok {
		o.reject("missing", "Field required", o.fields, "center_node_uuid")
	}
	list, ok := o.fields["messages"].([]any)
	if !ok {
		o.reject("list_type", "Input should be a valid list", o.fields["messages"], "messages")
	}
	for _, one := range list {
		m, _ := one.(map[string]any)
		q.text += fmt.Sprintf("%v(%v): %v\n", m["role_type"], m["role"], m["content"])
	}
	if n, ok := o.fields["max_facts"].(float64); ok {
		q.max = int(n)
	}
	return q, *o.problems
}

func readMessages(b []byte) ([]job, []problem) {
	o, bad := readObject(b)
	if bad != nil {
		return nil, []problem{*bad}
	}
	group := o.text("group_id", must)
	list, ok := o.fields["messages"].([]any)
	switch v, given := o.fields["messages"]; {
	case !given:
		o.reject("missing", "Field required", o.fields, "messages")
	case !ok:
		o.reject("list_type", "Input should be a valid list", v, "messages")
	}
	var jobs []job
	for i, v := range list {
		fields, ok := v.(map[string]any)
		if !ok {
			o.reject("model_attributes_type", "Input should be a valid dictionary", v, "messages", i)
			continue
		}
		jobs = append(jobs, readMessage(group, object{fields, append(o.at[:len(o.at):len(o.at)], "messages", i), o.problems}))
	}
	return jobs, *o.problems
}

func readMessage(group string, m object) job {
	role, content, roleType := m.text("role", nullable), m.text("content", must), m.text("role_type", must)
	if v, ok := m.fields["role_type"].(string); ok && v != "user" && v != "assistant" && v != "system" {
		m.reject("literal_error", "Input should be 'user', 'assistant' or 'system'", v, "role_type")
	}
	j := job{
		group: group, uuid: m.text("uuid", optional), content: role + "(" + roleType + "): " + content,
		name: m.text("name", 0), source: m.text("source_description", 0), validAt: time.Now().UTC(),
	}
	if said := m.text("timestamp", 0); said != "" {
		t, err := time.Parse(time.RFC3339Nano, said)
		if err != nil {
			t, err = time.Parse("2006-01-02T15:04:05.999999999", said) // a time without a zone is UTC
		}
		if err != nil {
			m.reject("datetime_from_date_parsing", "Input should be a valid datetime or date", said, "timestamp")
		}
		j.validAt = t.UTC()
	}
	return j
}

// object is a JSON object in a body, with the problems of the whole body.
type object struct {
	fields   map[string]any
	at       []any // path of the object in the body
	problems *[]problem
}

func readObject(b []byte) (object, *problem) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return object{}, &problem{"json_invalid", []any{"body", 0}, "JSON decode error", map[string]any{}}
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return object{}, &problem{"model_attributes_type", []any{"body"}, "Input should be a valid dictionary", v}
	}
	return object{fields, []any{"body"}, &[]problem{}}, nil
}

// The rules for a text field.
const (
	present  = 1 << iota // not missing
	nullOkay             // null
	must     = present
	nullable = present | nullOkay
	optional = nullOkay
)

func (o object) text(name string, rule int) string {
	v, given := o.fields[name]
	s, isText := v.(string)
	switch {
	case !given && rule&present != 0:
		o.reject("missing", "Field required", o.fields, name)
	case given && !isText && (v != nil || rule&nullOkay == 0):
		o.reject("string_type", "Input should be a valid string", v, name)
	}
	return s
}

func (o object) reject(kind, msg string, input any, at ...any) {
	*o.problems = append(*o.problems, problem{kind, append(o.at[:len(o.at):len(o.at)], at...), msg, input})
}
