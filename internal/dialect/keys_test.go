package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func TestKeys_Bounds(t *testing.T) {
	t.Parallel()
	var k dialect.Keys
	k.Add(strings.Repeat("x", 1000))
	for i := range 100 {
		k.Add(fmt.Sprint("id", i/2))
	}
	if len(k) != 16 || k[0] != "id0" || k[1] != "id1" {
		t.Errorf("got %d keys, %q first; want 16 distinct short ones", len(k), k[:2])
	}
}
