//go:build linux

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
)

// TestNothingAcknowledgedIsLostOnAFullDisk checks that chats continue if Graphiti is down
// and the disk, a file system of two megabytes, is full. Turns then wait in RAM, the status
// reports it, and every turn arrives once there is room again.
func TestNothingAcknowledgedIsLostOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("!!!!!!!! SKIPPED: a file system cannot be mounted here (%v); TestChatWithFullDisk uses a limit instead !!!!!!!!", err)
	}
	defer func() {
		// A child process of another test may hold files of this test until its exec.
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	g := startGraphiti(t, graphititest.Options{})
	g.Always(graphititest.Messages, graphititest.Answer(503, ""))
	w := start(t, dir, map[string]string{
		"memory.backend": "graphiti", "memory.endpoint": g.URL(), "memory.consent": "true",
		"identity.owner": "user:josh", "identity.group_ids": "raw", "recall.enabled": "false",
	})
	defer w.stop()
	full := func() bool { return w.app.memory().queue().InMemory > 0 }
	said := 0
	for ; said < 500 && !full(); said++ {
		if answer, _, _ := w.say(fmt.Sprint("I say ", said, " ", strings.Repeat("and so on ", 3000))); answer == "" {
			t.Fatal("no answer")
		}
	}
	if !full() {
		t.Fatal("the disk did not fill")
	}
	for i := range 3 {
		if answer, _, _ := w.say(fmt.Sprint("I go on talking ", i, " ") + strings.Repeat("and on ", 3000)); answer == "" {
			t.Fatal("no answer")
		}
	}
	waitUntil(t, "all turns to be on disk or in RAM", func() bool { q := w.app.memory().queue(); return q.Pending+q.InMemory == said+3 })
	taken := w.app.memory().queue().Pending
	if taken == 0 || taken >= said+3 {
		t.Fatalf("%d turns of %d were taken", taken, said+3)
	}
	if s := w.status(); !strings.Contains(s, "turns have not been stored on disk since") || !strings.Contains(s, "wait in RAM") || !strings.Contains(s, "make room") {
		t.Errorf("got %v, want \"turns have not been stored on disk since\" in it, \"wait in RAM\" in it, \"make room\" in it", s)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"))
	g.Always(graphititest.Messages, nil)
	waitUntil(t, "every turn", func() bool {
		q := w.app.memory().queue()
		return q.Verified == said+3 && q.Pending == 0 && q.Unkept == nil
	})
	if n, q := len(g.Episodes("user_josh")), w.app.memory().queue(); n != q.Verified {
		t.Errorf("%d messages of %d turns", n, q.Verified)
	}
	waitUntil(t, "no turn in RAM, and a line that turns are kept again", func() bool {
		q := w.app.memory().queue()
		return q.InMemory+q.NotKept == 0 && strings.Contains(w.log.String(), "turns are kept on disk again")
	})
	t.Logf("%d turns said, %d found room, all of them delivered", said+3, taken)
}
