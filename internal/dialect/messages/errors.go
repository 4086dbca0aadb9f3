package messages

import "github.com/graphiti-proxy/graphiti-proxy/internal/dialect"

// Error implements dialect.Dialect. OpenAI's shape with a type beside the error is
// Anthropic's shape plus members that its clients do not read. The documents promise
// it for all paths.
func (Dialect) Error(f dialect.Failure) []byte { return dialect.OpenAIError(f) }
