package card

import (
	"testing"
	"time"
)

// TestMain fixes the local time zone: the recorded texts state days of UTC.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	m.Run()
}
