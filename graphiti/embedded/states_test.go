package embedded

import (
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

func TestNoStatement(t *testing.T) {
	for text, want := range map[string]bool{
		"Which port does staging use?":                 true,
		"Hi! Which port does staging use?":             true,
		"Which port? And which host?":                  true,
		"Thanks. And which host?":                      true,
		"Staging is slow. Which port does it use?":     false,
		"The port is 6543.":                            false,
		"I moved to v1.2 of Redis, is that all right?": true,
		"We meet on Friday.\nWhich room was it?":       false,
		"我的猫叫咪咪。它吃什么？":                                 false,
		"私の猫はミケです！何を食べますか。":                            false,
		"قطتي اسمها ميمي. ماذا تأكل؟":                  false,
		"मेरी बिल्ली का नाम मिमी है। वह क्या खाती है?": false,
		"猫叫什么？它吃什么？":         true,
		"猫の名前は何ですか。何を食べますか。": true,
		"": false,
	} {
		if got := words.OnlyAsks(text); got != want {
			t.Errorf("%q states nothing: %v", text, got)
		}
	}
}

// TestAcknowledgementsAreNotShown checks that acknowledgments are not shown next to a
// statement.
func TestAcknowledgementsAreNotShown(t *testing.T) {
	e := openEmbedded(t)
	talk(t, e, "a", time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC), "Ann", "The staging database has port 6543.", "Bob", "Noted!",
		"Ann", "Hello! Which port was it?", "Bob", "Sure, understood.")
	got := search(t, e, "g", "Which port has the staging database?")
	if len(got) != 1 || got[0] != "Ann, 2026-01-05: The staging database has port 6543." {
		t.Errorf("found %q", got)
	}
}
