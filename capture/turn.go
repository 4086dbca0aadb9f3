package capture

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Turn is one finished exchange: what a person said and what was answered.
type Turn struct {
	ID        string // stable over retries, restarts and replicas
	Session   string // session:<id>
	User      string
	Assistant string
	Partial   bool      // the answer was cut at the token limit
	Said      time.Time // when the request came in
	Answered  time.Time // when the answer ended

	Client  string            // the client's family, such as "openai-js"; may be empty
	Targets []graphiti.Target // where it is to be kept
}
