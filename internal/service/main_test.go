package service_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain fails where a goroutine is left.
// TestMain fixes the local time zone: the recorded texts state days of UTC.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}
