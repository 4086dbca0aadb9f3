package capture

import "github.com/tidwall/gjson"

// Usage is what a provider says an answer took, in tokens; zero where it does
// not say.
type Usage struct {
	Input  int // of the request, what was cached included
	Cached int // of those, read from the provider's prompt cache
	Output int
}

// openAIUsage reads the usage of Chat Completions and of the Responses API,
// which have other names for the same.
func openAIUsage(u gjson.Result) (out Usage) {
	u.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens":
			out.Input = tokens(value)
		case "completion_tokens", "output_tokens":
			out.Output = tokens(value)
		case "prompt_tokens_details", "input_tokens_details":
			out.Cached = tokens(value.Get("cached_tokens"))
		}
		return true
	})
	return out
}

// anthropicUsage adds what an event says; Anthropic counts what was cached
// beside what was not.
func (u *Usage) anthropicUsage(r gjson.Result) {
	r.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "input_tokens", "cache_creation_input_tokens":
			u.Input += tokens(value)
		case "cache_read_input_tokens":
			u.Input += tokens(value)
			u.Cached = tokens(value)
		case "output_tokens":
			u.Output = tokens(value)
		}
		return true
	})
}

// maxTokens bounds what is believed.
const maxTokens = 1 << 30

func tokens(v gjson.Result) int { return int(min(max(v.Int(), 0), maxTokens)) }
