package config_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

func ExampleLoad() {
	c, err := config.Load(config.Sources{
		Flags: map[string]string{"listen": "127.0.0.1:9000"},
		Env:   []string{"HOME=/home/josh", "GRAPHITI_PROXY_LISTEN=127.0.0.1:1", "GRAPHITI_PROXY_RECALL_TIMEOUT=2s"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Listen, c.Recall.Timeout)
	// Output: 127.0.0.1:9000 2s
}
