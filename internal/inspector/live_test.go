package inspector

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestLive_Details checks that the details of a request say each thing once, in words that
// continue their sentence.
func TestLive_Details(t *testing.T) {
	row := requestRow{LoggedRequest: graphiti.LoggedRequest{Fate: "place", Cause: "place", Searches: []graphiti.LoggedSearch{{Scope: "user", Failed: "timeout", Ms: 349}}}}
	page, err := fill(row.details())
	must(t, err)
	for _, says := range []string{"<dd>place</dd>", "0 found, failed: timeout, 349 ms"} {
		if !strings.Contains(string(page), says) {
			t.Errorf("%q is not in %s", says, page)
		}
	}
}
