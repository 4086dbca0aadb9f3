package proxytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The allowed members of the objects of a Gemini request. The API accepts each name in
// camel case and in snake case.
var (
	geminiFields  = strings.Fields(`model contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent serviceTier store labels`)
	contentFields = strings.Fields(`parts role`)
	partFields    = strings.Fields(`text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse
		thought thoughtSignature videoMetadata mediaResolution mediaProcessing partMetadata audioTranscription speechMetadata`)
	generationFields = strings.Fields(`stopSequences responseMimeType responseSchema responseJsonSchema responseFormat responseModalities candidateCount
		maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers speechConfig
		thinkingConfig imageConfig mediaResolution`)
)

// partData lists the members of which a part has exactly one.
var partData = strings.Fields(`text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse`)

// unsignedThought replaces a missing signature in clients such as Gemini CLI. The API
// accepts it.
const unsignedThought = "skip_thought_signature_validator"

// members are the members of an object, by their names in camel case.
type members map[string]json.RawMessage

// camelCase returns a name in camel case.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

// geminiObject parses an object and rejects members that are not allowed.
func geminiObject(raw json.RawMessage, where string, allowed []string) (m members, wrong string) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil, "Invalid JSON payload received. Invalid value at '" + where + "'"
	}
	m = make(members)
	for name, v := range all {
		camel := camelCase(name)
		if _, twice := m[camel]; twice {
			return nil, fmt.Sprintf("Invalid JSON payload received. %q at '%s' is given twice.", camel, where)
		}
		m[camel] = v
		if !slices.Contains(allowed, camel) {
			return nil, fmt.Sprintf("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", name, where)
		}
	}
	return m, ""
}

// repeated parses a repeated field, which may be a single value.
func repeated(raw json.RawMessage) (items []json.RawMessage) {
	if json.Unmarshal(raw, &items) == nil {
		return items
	}
	return []json.RawMessage{raw}
}

// geminiRequest holds the request properties that affect the answer.
type geminiRequest struct {
	schema json.RawMessage // of the answer; nil means text
}

// geminiReader follows the turns of a request.
type geminiReader struct {
	c     *Input
	calls []string // names of the functions that the last content calls
	began int      // messages before the model's current run of contents
}

// readGemini validates a request as the API does. wrong is the violation, or "". A thought
// is bound to the conversation before it.
func readGemini(body []byte) (c Input, r geminiRequest, wrong string) {
	top, wrong := geminiObject(body, "", geminiFields)
	if wrong != "" {
		return c, r, wrong
	}
	if raw, ok := top["systemInstruction"]; ok {
		m, wrong := geminiObject(raw, "system_instruction", contentFields)
		if wrong != "" {
			return c, r, wrong
		}
		text, wrong := geminiTexts(m["parts"], "system_instruction")
		if wrong != "" {
			return c, r, wrong
		}
		c.Messages = append(c.Messages, Message{Role: "system", Text: text})
	}
	if raw, ok := top["generationConfig"]; ok {
		config, wrong := geminiObject(raw, "generation_config", generationFields)
		if wrong != "" {
			return c, r, wrong
		}
		if string(config["responseMimeType"]) == `"application/json"` {
			r.schema = config["responseJsonSchema"]
			if r.schema == nil {
				r.schema = config["responseSchema"]
			}
		}
	}
	for _, t := range repeated(top["tools"]) {
		c.Tools = c.Tools || bytes.Contains(t, []byte("unctionDeclarations")) || bytes.Contains(t, []byte("unction_declarations"))
	}
	contents := repeated(top["contents"])
	if len(top["contents"]) == 0 || len(contents) == 0 {
		return c, r, "* GenerateContentRequest.contents: contents is not specified"
	}
	g := geminiReader{c: &c}
	for i, raw := range contents {
		if wrong := g.content(raw, fmt.Sprintf("contents[%d]", i)); wrong != "" {
			return c, r, wrong
		}
	}
	switch {
	case len(g.calls) > 0:
		return c, r, "Please ensure that function response turn comes immediately after a function call turn."
	case c.Messages[len(c.Messages)-1].Role == "assistant":
		return c, r, "Please ensure that single turn requests end with a user role or the role field is empty."
	}
	return c, r, ""
}

// content reads one content.
func (g *geminiReader) content(raw json.RawMessage, where string) (wrong string) {
	m, wrong := geminiObject(raw, where, contentFields)
	if wrong != "" {
		return wrong
	}
	role := "user"
	if raw, ok := m["role"]; ok && json.Unmarshal(raw, &role) != nil || role != "user" && role != "model" && role != "function" {
		return "Please use a valid role: user, model."
	}
	last := len(g.c.Messages) - 1
	if goesOn := role == "model" && last >= 0 && g.c.Messages[last].Role == "assistant"; !goesOn {
		g.began = len(g.c.Messages)
	}
	var texts []string
	var calls, responses []string
	parts := repeated(m["parts"])
	if len(m["parts"]) == 0 || len(parts) == 0 {
		return "* GenerateContentRequest." + where + ".parts: contents.parts must not be empty."
	}
	for n, raw := range parts {
		where := fmt.Sprintf("%s.parts[%d]", where, n)
		p, kind, wrong := geminiPart(raw, where)
		if wrong != "" {
			return wrong
		}
		name := func() string {
			var f struct{ Name string }
			_ = json.Unmarshal(p[kind], &f) // an unreadable name matches no call
			return f.Name
		}
		switch {
		case kind == "functionCall" && role != "model" || kind == "functionResponse" && role == "model" || role == "function" && kind != "functionResponse":
			return "* GenerateContentRequest." + where + ": a part with " + kind + " is not allowed for role " + role
		case kind == "functionCall":
			calls = append(calls, name())
		case kind == "functionResponse":
			responses = append(responses, name())
		case kind == "text" && string(p["thought"]) != "true":
			var text string
			if json.Unmarshal(p["text"], &text) != nil {
				return "Invalid value at '" + where + ".text' (TYPE_STRING)"
			}
			texts = append(texts, text)
		}
		var signature string
		if raw, ok := p["thoughtSignature"]; ok && (json.Unmarshal(raw, &signature) != nil ||
			signature != unsignedThought && signature != thoughtOf(g.c.Messages[:g.began])) {
			return "Corrupted thought signature. The thought is bound to a different conversation"
		}
	}
	return g.add(role, texts, calls, responses)
}

// add checks the order of turns and adds a message.
func (g *geminiReader) add(role string, texts, calls, responses []string) (wrong string) {
	if (len(g.calls) > 0 || len(responses) > 0) && strings.Join(g.calls, ",") != strings.Join(responses, ",") {
		if len(g.calls) == 0 || len(responses) == 0 {
			return "Please ensure that function response turn comes immediately after a function call turn."
		}
		return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	}
	g.calls = calls
	says := map[string]string{"user": "user", "function": "tool", "model": "assistant"}[role]
	if len(responses) > 0 && len(texts) == 0 {
		says = "tool"
	}
	if len(calls) > 0 && (g.began == 0 || g.c.Messages[g.began-1].Role == "system") {
		return "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	}
	if says == "assistant" {
		text := strings.Join(texts, "")
		if g.began < len(g.c.Messages) {
			g.c.Messages[g.began].Text += text
			return ""
		}
		g.c.Messages = append(g.c.Messages, Message{Role: says, Text: text})
		return ""
	}
	g.c.Messages = append(g.c.Messages, Message{Role: says, Text: strings.Join(texts, "\n")})
	return ""
}

// geminiPart parses a part and returns the kind of its data.
func geminiPart(raw json.RawMessage, where string) (p members, kind, wrong string) {
	if p, wrong = geminiObject(raw, where, partFields); wrong != "" {
		return nil, "", wrong
	}
	for _, name := range partData {
		if _, ok := p[name]; !ok {
			continue
		}
		if kind != "" {
			return nil, "", "Invalid value at '" + where + "' (oneof), oneof field 'data' is already set."
		}
		kind = name
	}
	if kind == "" {
		return nil, "", "* GenerateContentRequest." + where + ".data: required oneof field 'data' must have one initialized field"
	}
	return p, kind, ""
}

// geminiTexts joins the texts of some parts.
func geminiTexts(raw json.RawMessage, where string) (text, wrong string) {
	var texts []string
	for n, raw := range repeated(raw) {
		p, kind, wrong := geminiPart(raw, fmt.Sprintf("%s.parts[%d]", where, n))
		if wrong != "" {
			return "", wrong
		}
		if kind == "text" && json.Unmarshal(p["text"], &text) == nil {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), ""
}

// example returns a value that fits a schema, as a model has to.
func example(schema json.RawMessage) any {
	var s struct {
		Type       string
		Enum       []any
		Properties map[string]json.RawMessage
	}
	_ = json.Unmarshal(schema, &s) // an unreadable schema accepts any text
	switch strings.ToLower(s.Type) {
	case "object":
		o := make(map[string]any)
		for name, p := range s.Properties {
			o[name] = example(p)
		}
		return o
	case "array":
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return false
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	return "As asked."
}
