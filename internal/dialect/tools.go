package dialect

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// UnknownTools reports whether the request offers a tool without evidence of harmlessness. An
// agent with such tools may work in any project. In a chat server's request, the server's own
// tools are known by their names. It reads the body again.
func (c *Conversation) UnknownTools(server bool) bool {
	if !c.Tools {
		return false
	}
	var known []string
	if server {
		known = serverTools
	}
	doc := Document(c.body)
	for _, list := range []string{"tools", "functions", `input.#(type=="additional_tools")#.tools`} {
		if tools := doc.Get(list); tools.Exists() && !isHarmless(tools, known) {
			return true
		}
	}
	return false
}

var serverTools = gather(func(cl *client) []string { return cl.Tools })

// isHarmless reports whether a tool, or each tool of a list, is known to be harmless: its name is
// known, the provider runs it away from the client's files, or it can be passed no program.
func isHarmless(tool gjson.Result, known []string) bool {
	if tool.IsArray() {
		return !slices.ContainsFunc(tool.Array(), func(one gjson.Result) bool { return !isHarmless(one, known) })
	}
	if f := tool.Get("function"); f.IsObject() {
		tool = f
	}
	kind, name := tool.Get("type").String(), tool.Get("name").String()
	isFunction := kind == "" || kind == "function" || kind == "custom"
	switch {
	case kind == "namespace":
		return isHarmless(tool.Get("tools"), known)
	case !isFunction:
		isHosted := slices.ContainsFunc(hosted, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
		return isHosted || kind == "shell" && strings.HasPrefix(tool.Get("environment.type").String(), "container")
	case slices.Contains(known, name):
		return true
	case name == "": // Gemini's
		found := false
		tool.ForEach(func(key, list gjson.Result) bool {
			isList := key.Str == "functionDeclarations" || key.Str == "function_declarations"
			found = isList && isHarmless(list, known) || slices.Contains(hostedByGoogle, key.Str)
			return found
		})
		return found
	}
	for _, member := range []string{"parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"} {
		if schema := tool.Get(member); schema.IsObject() {
			return !takesText(schema, "", consistsOf(name, lookupWords))
		}
	}
	return kind != "custom"
}

// hosted lists the prefixes of the types of tools that providers run, hostedByGoogle the
// members of Google's.
var (
	hosted         = []string{"web_search", "web_fetch_", "file_search", "code_interpreter", "code_execution_", "image_generation", "tool_search_tool_", "mcp", "openrouter:"}
	hostedByGoogle = []string{"googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "urlContext", "url_context", "codeExecution", "code_execution", "googleMaps", "google_maps"}
)

// lookupWords and lookupArguments are the words of tools that look up the world, and of their
// free texts. Every word of a name has to be one of them: other words may mean a program.
var (
	lookupWords     = []string{"get", "current", "weather", "forecast", "temperature", "time", "date", "web", "search", "internet", "google", "bing", "brave", "duckduckgo", "tavily", "wikipedia", "news"}
	lookupArguments = []string{"query", "queries", "q", "search", "location", "city", "country", "region", "place", "unit", "units", "date", "timezone", "time", "zone", "lang", "language", "locale", "topic", "domain", "domains", "allowed", "blocked"}
)

// takesText reports whether a value of a schema can hold a text, and so a program. The texts of a
// lookup are known by the names of its arguments. name is "" for all arguments of a tool.
func takesText(schema gjson.Result, name string, lookup bool) bool {
	if schema.Get("enum").IsArray() || schema.Get("const").Exists() {
		return false
	}
	if more := schema.Get("additionalProperties"); more.IsObject() || more.Bool() || schema.Get("patternProperties").IsObject() {
		return true
	}
	choices, types := append(schema.Get("anyOf").Array(), schema.Get("oneOf").Array()...), schema.Get("type").Array()
	isKnown := len(choices)+len(types) > 0
	for _, choice := range choices {
		isKnown = isKnown && !takesText(choice, name, lookup)
	}
	for _, kind := range types {
		switch strings.ToLower(kind.Str) {
		case "boolean", "integer", "number", "null":
		case "string":
			isKnown = isKnown && lookup && consistsOf(name, lookupArguments)
		case "array":
			isKnown = isKnown && !takesText(schema.Get("items"), name, lookup)
		case "object":
			isKnown = isKnown && (name == "" || schema.Get("properties").Exists())
			schema.Get("properties").ForEach(func(key, value gjson.Result) bool {
				isKnown = isKnown && key.Str != "" && !takesText(value, key.Str, lookup)
				return isKnown
			})
		default:
			return true
		}
	}
	return !isKnown
}

func consistsOf(name string, words []string) bool {
	split := wordsOf(name)
	return len(split) > 0 && !slices.ContainsFunc(split, func(w string) bool { return !slices.Contains(words, w) })
}
