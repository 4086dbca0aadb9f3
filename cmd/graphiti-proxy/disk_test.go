//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// TestChatWithFullDisk: neither a block nor a turn can be stored. A
// limit on the size of files stands for the disk.
func TestChatWithFullDisk(t *testing.T) {
	const inside = "TEST_FULL_DISK"
	if os.Getenv(inside) == "" { // the limit is one of the whole process
		c := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$") // #nosec G204 -- ourselves
		c.Env = append(os.Environ(), inside+"=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("got %v\n%s, want no error, and a line that the test has passed", err, out)
		}
		return
	}
	w := start(t, t.TempDir(), nil)
	w.say(fact)
	w.delivered(1)
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails instead
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	full := limit
	full.Cur = 4096
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
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
			t.Errorf("got %q, %s, %q, want answer \"I do not know.\", \"reason=not_persisted\" in it, no \"graphiti_memory\" in it", answer, header, saw)
		}
	}
	waitUntil(t, "the turns to wait in RAM", func() bool { return w.app.memory().queue().InMemory == 5 })
	if s := w.status(); !strings.Contains(s, "5 wait in RAM, 0 are lost") || !strings.Contains(s, "embedded, trouble") || !strings.Contains(s, "make room") {
		t.Errorf("got %v, want \"5 wait in RAM, 0 are lost\" in it, \"embedded, trouble\" in it, \"make room\" in it", s)
	}
	if ready := w.get("/readyz"); !strings.Contains(ready, `"ready": true`) || !strings.Contains(ready, `"disk"`) || !strings.Contains(ready, `"turns_in_memory": 5`) || !strings.Contains(ready, `"since"`) {
		t.Errorf("got %v, want \"\"ready\": true\" in it, \"\"disk\"\" in it, \"\"turns_in_memory\": 5\" in it, \"\"since\"\" in it", ready)
	}
	if n, v := w.metric("graphiti_proxy_turns_in_memory"), w.metric("graphiti_proxy_data_dir_failing_seconds"); n != "5" || v == "0" {
		t.Errorf("%s turns in memory, failing for %s", n, v)
	}
	if !strings.Contains(w.log.String(), "turns cannot be kept on disk") {
		t.Errorf("got %v, want \"turns cannot be kept on disk\" in it", w.log)
	}
	restore()
	w.delivered(6)
	waitUntil(t, "no turn in RAM, and a line that turns are kept again", func() bool {
		q := w.app.memory().queue()
		return q.InMemory+q.NotKept == 0 && q.Unkept == nil && strings.Contains(w.log.String(), "turns are kept on disk again")
	})
	if answer, header, _ := w.say(question); !strings.Contains(answer, "Miso") {
		t.Errorf("after there was room again: %q, %s", answer, header)
	}
}
