package service_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where a goroutine is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
