package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
)

// TestOpen checks that open prints the address of the running proxy's inspector, even
// without a browser, and that without a proxy its error names the remedy.
func TestOpen(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), nil)
	at := "http://" + w.app.admin.Addr().String() + "\n"
	for _, args := range [][]string{
		{"open", "--set", "data_dir=" + w.app.cfg.DataDir},
		{"open", "--set", "admin.listen=" + w.app.admin.Addr().String()},
	} {
		out, beside, err := commandIn(t, t.TempDir(), t.TempDir(), args...)
		if err != nil || out != at || !strings.Contains(beside, "open the address in a browser") {
			t.Errorf("%q: %q, %q, %v", args, out, beside, err)
		}
	}
	out, err := command(t, t.TempDir(), "open")
	if err == nil || out != "" || !strings.Contains(err.Error(), "graphiti-proxy serve") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without a proxy: %q, %v", out, err)
	}
}

// TestBrowse checks that browse starts the program that opens addresses on each system, and
// that its error reports a missing display or browser.
func TestBrowse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := browse("linux", "", "http://x"); err == nil || !strings.Contains(err.Error(), "no display") {
		t.Errorf("without a display: %v", err)
	}
	if err := browse("linux", ":0", "http://x"); err == nil || !strings.Contains(err.Error(), "found no browser") {
		t.Errorf("without xdg-open: %v", err)
	}
	for system, name := range map[string]string{"linux": "xdg-open", "darwin": "open", "windows": "rundll32"} {
		to := filepath.Join(dir, system)
		// #nosec G306 -- a program
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho \"$@\" > "+to+".part; /bin/mv "+to+".part "+to+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := browse(system, ":0", "http://x"); err != nil {
			t.Fatal(err)
		}
		var got []byte
		polltest.Until(t, name+" to be called", func() (ok bool) {
			b, err := os.ReadFile(to)
			got = b
			return err == nil
		})
		if !strings.HasSuffix(string(got), "http://x\n") {
			t.Errorf("%s was called with %q", name, got)
		}
	}
}
