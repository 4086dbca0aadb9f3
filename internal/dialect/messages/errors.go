package messages

import "github.com/graphiti-proxy/graphiti-proxy/internal/dialect"

// Error implements dialect.Dialect. OpenAI's format with a type next to the error is
// Anthropic's format plus members that its clients do not read. The documentation promises
// it for all paths.
func (Dialect) Error(f dialect.Failure) []byte { return dialect.OpenAIError(f) }
