package chat

import "github.com/graphiti-proxy/graphiti-proxy/internal/dialect"

func (Dialect) Error(f dialect.Failure) []byte { return dialect.OpenAIError(f) }
