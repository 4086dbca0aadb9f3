package config

import (
	"testing"
	"time"
)

// TestTimeoutOfRecall checks that the default of recall.timeout is longer for a service
// than for the embedded memory, and that an explicit value overrides it.
func TestTimeoutOfRecall(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want time.Duration
	}{
		{nil, 400 * time.Millisecond},
		{[]string{"GRAPHITI_URL=http://127.0.0.1:8000"}, 800 * time.Millisecond},
		{[]string{"GRAPHITI_PROXY_MEMORY_BACKEND=graphiti-mcp", "GRAPHITI_PROXY_MEMORY_ENDPOINT=http://127.0.0.1:8000"}, 800 * time.Millisecond},
		{[]string{"GRAPHITI_URL=http://127.0.0.1:8000", "GRAPHITI_PROXY_RECALL_TIMEOUT=400ms"}, 400 * time.Millisecond},
	} {
		c, err := Load(Sources{Env: append(tc.env, "HOME="+t.TempDir())})
		if err != nil || c.Recall.Timeout != tc.want {
			t.Errorf("%v: got recall.timeout %v, %v; want %v", tc.env, c.Recall.Timeout, err, tc.want)
		}
	}
}
