//go:build unix

package main

import (
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestChatGoesOnWithAFullDisk: neither a block nor a turn can be stored. A
// limit on the size of files stands for the disk.
func TestChatGoesOnWithAFullDisk(t *testing.T) {
	w := start(t, t.TempDir(), nil)
	w.say(fact)
	w.delivered(1)
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails instead
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	full := limit
	full.Cur = 4096
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	restored := false
	restore := func() {
		if !restored {
			restored = true
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				t.Error(err)
			}
		}
	}
	defer restore()
	for i := range 5 {
		answer, header, saw := w.say(fmt.Sprintf("Question %d: what is my cat called?", i))
		if answer != "I do not know." || !strings.Contains(header, "reason=not_persisted") || strings.Contains(saw, "graphiti_memory") {
			t.Errorf("%q, %s, %q", answer, header, saw)
		}
	}
	restore()
	if answer, header, _ := w.say(question); !strings.Contains(answer, "Miso") {
		t.Errorf("after there was room again: %q, %s", answer, header)
	}
}
